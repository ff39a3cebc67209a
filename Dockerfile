# One image, one process: the server owns its data directory (docs/adr/0004).

FROM python:3.11-slim AS build
# hnswlib comes as source; compiled for this machine alone it would crash on an older one.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
ENV HNSWLIB_NO_NATIVE=1
# The wheel carries the compiled modules (docs/adr/0040): memory is derived with a quarter less work.
ENV STRATA_COMPILE=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY scripts/wheel.py scripts/compiling.py scripts/
COPY sdk sdk
COPY schemas schemas
COPY projectors projectors
COPY engine engine
COPY api api
RUN pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheels ./sdk . \
    && python -m venv /opt/strata \
    && /opt/strata/bin/pip install --quiet --no-cache-dir /wheels/*.whl

FROM python:3.11-slim
# A fixed id, so that a volume made by one image is readable by the next.
RUN groupadd --gid 3141 strata \
    && useradd --uid 3141 --gid strata --no-create-home --shell /usr/sbin/nologin strata \
    && install --directory --owner strata --group strata --mode 0700 /data
COPY --from=build /opt/strata /opt/strata
ENV PATH=/opt/strata/bin:$PATH PYTHONUNBUFFERED=1
USER strata
WORKDIR /data
VOLUME /data
EXPOSE 3141
# The drain on SIGTERM takes at most ten seconds; `docker stop` waits as long by default.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:3141/v1/admin/ready', timeout=4).close()"]
# All interfaces of the container, since the loopback of a container reaches no one.
# The preset dev_local believes unsigned callers: publish the port on loopback only,
# as docker-compose.yml does.
CMD ["strata", "serve", "--host", "0.0.0.0", "--port", "3141", "--data", "/data"]
