/* What is really on the disk, and what if the disk says no?
 *
 * Preloaded into a server. Below FAULT_DIR it writes down, in FAULT_JOURNAL and in order, every change
 * of a name and every sync that succeeded; a file about to lose its last name is linked into
 * FAULT_GRAVE first. tests/faults/power.py reads the journal and leaves what a power cut would.
 *
 *   create INODE PATH      mkdir INODE PATH      rename FROM TO      link FROM TO
 *   unlink PATH            rmdir PATH            truncate INODE SIZE
 *   begin TICKET INODE     a sync starts: only what was done before this line can be on the disk
 *   sync TICKET INODE SIZE, syncdir TICKET INODE     it succeeded
 *   failed INODE           it failed: the kernel may have dropped the pages (never trust a retry)
 *   overwrite INODE OFFSET a write inside a file: the simulation only knows files that grow
 *
 * With FAULT_CALL (sync or write) the calls on files whose path holds FAULT_MATCH and ends in
 * FAULT_SUFFIX fail with FAULT_ERRNO: FAULT_TIMES of them (0: all) from the FAULT_AT-th on, counted
 * while the file FAULT_SWITCH exists. FAULT_SLOW_MS delays the matching syncs instead. FAULT_CALL short
 * writes half of what was given, as a disk does that is filling up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATH_BYTES 4096

static int journal = -1;
static const char *folder, *grave, *call, *match, *suffix, *switch_path;
static long fail_at, fail_times, slow_ms, calls_seen, tickets, graves;
static int fail_errno;

static const char *text_of(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    folder = getenv("FAULT_DIR");
    grave = getenv("FAULT_GRAVE");
    call = text_of("FAULT_CALL", "");
    match = text_of("FAULT_MATCH", "/");
    suffix = text_of("FAULT_SUFFIX", "");
    switch_path = getenv("FAULT_SWITCH");
    fail_at = atol(text_of("FAULT_AT", "1"));
    fail_times = atol(text_of("FAULT_TIMES", "0"));
    fail_errno = atoi(text_of("FAULT_ERRNO", "5"));
    slow_ms = atol(text_of("FAULT_SLOW_MS", "0"));
    if (folder && getenv("FAULT_JOURNAL"))
        journal = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULT_JOURNAL"),
                               O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

/* One line, one write: lines of many threads do not mix. */
static void note(const char *format, ...) {
    char line[2 * PATH_BYTES + 64];
    int keep = errno;
    va_list values;
    if (journal < 0) return;
    va_start(values, format);
    int size = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (size > 0) syscall(SYS_write, journal, line, (size_t)size);
    errno = keep;
}

static int below(const char *path) {
    size_t size = folder ? strlen(folder) : 0;
    return size && !strncmp(path, folder, size) && (path[size] == '/' || !path[size]);
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_BYTES - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return below(path);
}

/* Whether the rule is about this file, and its turn has come. */
static int chosen(const char *kind, const char *path) {
    size_t size = strlen(path), tail = strlen(suffix);
    if (strcmp(call, kind) || !strstr(path, match)) return 0;
    if (size < tail || strcmp(path + size - tail, suffix)) return 0;
    if (switch_path && syscall(SYS_faccessat, AT_FDCWD, switch_path, F_OK)) return 0;
    long turn = __sync_add_and_fetch(&calls_seen, 1);
    return turn >= fail_at && (!fail_times || turn < fail_at + fail_times);
}

/* ── syncs ──────────────────────────────────────────────────────────────────────────────────── */

static int sync_file(int fd, long number) {
    char path[PATH_BYTES];
    struct stat found;
    if (!path_of(fd, path) || fstat(fd, &found)) return (int)syscall(number, fd);
    unsigned long inode = found.st_ino;
    if (chosen("sync", path)) {
        if (!slow_ms) {
            note("failed\t%lu\n", inode);
            errno = fail_errno;
            return -1;
        }
        usleep((useconds_t)slow_ms * 1000);
    }
    long ticket = __sync_add_and_fetch(&tickets, 1);
    int pid = getpid();
    note("begin\t%d-%ld\t%lu\n", pid, ticket, inode);
    int answer = (int)syscall(number, fd);
    if (answer) note("failed\t%lu\n", inode);
    else if (S_ISDIR(found.st_mode)) note("syncdir\t%d-%ld\t%lu\n", pid, ticket, inode);
    else note("sync\t%d-%ld\t%lu\t%lld\n", pid, ticket, inode, (long long)found.st_size);
    return answer;
}

int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

/* ── bytes ──────────────────────────────────────────────────────────────────────────────────── */

static int refuse_write(int fd, off_t offset) {
    char path[PATH_BYTES];
    struct stat found;
    if (!folder || !path_of(fd, path)) return 0;
    if (chosen("write", path)) {
        errno = fail_errno;
        return 1;
    }
    if (!fstat(fd, &found) && S_ISREG(found.st_mode)) {
        if (offset < 0) {
            int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
            offset = flags & O_APPEND ? found.st_size : syscall(SYS_lseek, fd, 0, SEEK_CUR);
        }
        if (offset < found.st_size)
            note("overwrite\t%lu\t%lld\n", (unsigned long)found.st_ino, (long long)offset);
    }
    return 0;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    char path[PATH_BYTES];
    if (refuse_write(fd, -1)) return -1;
    if (size > 1 && !strcmp(call, "short") && path_of(fd, path) && chosen("short", path)) size /= 2;
    return syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return refuse_write(fd, -1) ? -1 : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    return refuse_write(fd, offset) ? -1 : syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    return refuse_write(fd, offset) ? -1 : syscall(SYS_pwrite64, fd, bytes, size, offset);
}

static int shorten(int fd, off_t size) {
    char path[PATH_BYTES];
    struct stat found;
    int answer = (int)syscall(SYS_ftruncate, fd, size);
    if (!answer && path_of(fd, path) && !fstat(fd, &found))
        note("truncate\t%lu\t%lld\n", (unsigned long)found.st_ino, (long long)size);
    return answer;
}

int ftruncate(int fd, off_t size) { return shorten(fd, size); }
int ftruncate64(int fd, off64_t size) { return shorten(fd, size); }

/* ── names ──────────────────────────────────────────────────────────────────────────────────── */

static int open_file(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_BYTES];
    struct stat found;
    int is_new = (flags & O_CREAT) && syscall(SYS_faccessat, at, name, F_OK);
    int fd = (int)syscall(SYS_openat, at, name, flags, mode);
    if (fd < 0 || !(flags & (O_CREAT | O_TRUNC))) return fd;
    int keep = errno;
    if (path_of(fd, path) && !fstat(fd, &found)) {
        unsigned long inode = found.st_ino;
        if (is_new) note("create\t%lu\t%s\n", inode, path);
        else if (flags & O_TRUNC) note("truncate\t%lu\t0\n", inode);
    }
    errno = keep;
    return fd;
}

#define MODE(flags, mode)                             \
    mode_t mode = 0;                                  \
    if (flags & (O_CREAT | __O_TMPFILE)) {            \
        va_list rest;                                 \
        va_start(rest, flags);                        \
        mode = va_arg(rest, mode_t);                  \
        va_end(rest);                                 \
    }

int open(const char *name, int flags, ...) {
    MODE(flags, mode)
    return open_file(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    MODE(flags, mode)
    return open_file(AT_FDCWD, name, flags, mode);
}

int openat(int at, const char *name, int flags, ...) {
    MODE(flags, mode)
    return open_file(at, name, flags, mode);
}

int openat64(int at, const char *name, int flags, ...) {
    MODE(flags, mode)
    return open_file(at, name, flags, mode);
}

/* A file that is about to lose a name may get it back: keep its bytes. */
static void bury(const char *path) {
    char place[PATH_BYTES];
    int keep = errno;
    if (!grave || !below(path)) return;
    snprintf(place, sizeof place, "%s/%d-%ld", grave, getpid(), __sync_add_and_fetch(&graves, 1));
    syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, place, 0);
    errno = keep;
}

int rename(const char *from, const char *to) {
    if (below(to)) bury(to);
    int answer = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    if (!answer && below(to)) note("rename\t%s\t%s\n", from, to);
    return answer;
}

int link(const char *from, const char *to) {
    int answer = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!answer && below(to)) note("link\t%s\t%s\n", from, to);
    return answer;
}

int unlink(const char *path) {
    bury(path);
    int answer = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!answer && below(path)) note("unlink\t%s\n", path);
    return answer;
}

int mkdir(const char *path, mode_t mode) {
    struct stat found;
    int answer = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (!answer && below(path) && !stat(path, &found))
        note("mkdir\t%lu\t%s\n", (unsigned long)found.st_ino, path);
    return answer;
}

int rmdir(const char *path) {
    int answer = (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
    if (!answer && below(path)) note("rmdir\t%s\n", path);
    return answer;
}
