"""A chat that remembers: every line you type is kept, and questions are answered from memory.

    python examples/chat.py                      # a server on this machine
    python examples/chat.py --data ./chat-data   # no server: the engine in this process

End a line with a question mark to ask. Leave with an empty line; next time it still knows.
"""

import argparse
import sys

from strata_client import Client


def opened(arguments: argparse.Namespace) -> Client:
    """A client of a server, or of a data directory."""
    if arguments.data:
        return Client.embedded(arguments.data, scope=arguments.scope)
    return Client(arguments.url, scope=arguments.scope)


def reply(memory: Client, line: str) -> str:
    """Keep the line; answer when it asks."""
    if not line.endswith("?"):
        memory.experience(line, wait="indexed")
        return "I will remember that."
    answer = memory.answer(line)
    # A model would be given memory.recall(line).context_block; without one, memory speaks itself.
    return answer.answer if answer.known else "I do not know yet."


def main() -> None:
    """Talk until there is nothing more to say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="address of a server")
    parser.add_argument("--data", help="a data directory instead of a server")
    parser.add_argument("--scope", default="user:chat", help="whose memory it is")
    with opened(parser.parse_args()) as memory:
        for line in sys.stdin:
            if not line.strip():
                break
            print(reply(memory, line.strip()), flush=True)


if __name__ == "__main__":
    main()
