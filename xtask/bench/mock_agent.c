/* mock_agent: a stand-in for the command line of a coding agent. It starts in a fraction of a millisecond, accepts
 * any flags, and prints text. What it does is set by variables, so that it works behind any way of starting it:
 *
 *   MOCK_LINES           lines of filler (default 3)
 *   MOCK_MIB             this many MiB of lines of 200 B to 4 KiB instead, with a 64 KiB line in every 512 KiB
 *   MOCK_ONE_LINE_MIB    one line of this many MiB instead
 *   MOCK_SLEEP_MS        sleep before the last message
 *   MOCK_COUNTER         file; a byte is appended per call, its size is the number of the iteration
 *   MOCK_PROMISE_AT      end the last message with <promise>COMPLETE</promise> from iteration K on
 *   MOCK_GRANDCHILD_S    leave a child behind that lives this many seconds, in a session of its own, holding stdout
 *   MOCK_PIDFILE         file; "role pid ppid" is appended for the agent and for its grandchild
 *   MOCK_EXITFILE        file; the wall clock in nanoseconds is appended as the last thing before the exit
 *
 * Memory stays under 1 MiB, so that the largest process of a measured run is never this one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 512 << 10, LONG_LINE = 64 << 10 };

static long number(const char *name, long otherwise) {
    const char *v = getenv(name);
    return v && *v ? atol(v) : otherwise;
}

static void put(int fd, const char *p, size_t n) {
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0) { if (errno == EINTR) continue; _exit(141); }
        p += w;
        n -= (size_t)w;
    }
}

/* Appends to the file that a variable names, if it does; gives the size after that. */
static long append(const char *name, const char *text) {
    const char *file = getenv(name);
    if (!file || !*file) return 0;
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return 0;
    struct stat st;
    put(fd, text, strlen(text));
    long size = fstat(fd, &st) ? 0 : (long)st.st_size;
    close(fd);
    return size;
}

static void note_pid(const char *role) {
    char line[96];
    snprintf(line, sizeof line, "%s %d %d\n", role, getpid(), getppid());
    append("MOCK_PIDFILE", line);
}

static void nap(long ms) {
    struct timespec t = { ms / 1000, (ms % 1000) * 1000000L };
    while (ms > 0 && nanosleep(&t, &t) && errno == EINTR) {}
}

static uint64_t seed = 0x9E3779B97F4A7C15ull;
static uint32_t chance(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return (uint32_t)(seed >> 16); }

static const char *words[] = { "the ", "test ", "fn main() { ", "error[E0308]: ", "cargo ", "src/lib.rs:42 ",
    "assert_eq!(a, b); ", "looking at ", "refactor ", "ok ", "result ", "0x7fff ", "let x = 1; ", "and ", "then ", "-> " };

static void fill(char *p, size_t n) {
    for (char *end = p + n; p < end;) {
        const char *w = words[(chance() >> 8) & 15];
        size_t l = strlen(w), room = (size_t)(end - p);
        memcpy(p, w, l < room ? l : room);
        p += l < room ? l : room;
    }
}

static char *line(char *p, size_t size) { fill(p, size - 1); p[size - 1] = '\n'; return p + size; }

static void many_lines(char *block, uint64_t left) {
    char *p = block;
    while ((size_t)(p - block) + LONG_LINE + 4096 < BLOCK) {
        size_t size = (size_t)200 << (chance() % 4);
        size += chance() % size;
        p = line(p, size < 4096 ? size : 4096);
    }
    p = line(p, LONG_LINE);
    for (size_t whole = (size_t)(p - block); left;) {
        size_t n = left < whole ? (size_t)left : whole;
        put(1, block, n);
        left -= n;
        if (!left && block[n - 1] != '\n') put(1, "\n", 1);
    }
}

static void one_line(char *block, uint64_t left) {
    fill(block, BLOCK);
    for (; left; left -= BLOCK) put(1, block, BLOCK);
    put(1, "\n", 1);
}

int main(int argc, char **argv) {
    static char block[BLOCK];
    int prompted = 0;
    for (int i = 1; i < argc; i++) prompted |= argv[i][0] != '-';
    if (!prompted && !isatty(0)) while (read(0, block, sizeof block) > 0) {} /* the prompt came by stdin */

    note_pid("agent");
    long iteration = append("MOCK_COUNTER", "x");

    long life = number("MOCK_GRANDCHILD_S", 0);
    if (life && fork() == 0) {
        setsid();
        note_pid("grandchild");
        nap(life * 1000);
        _exit(0);
    }

    long mib = number("MOCK_MIB", 0), one = number("MOCK_ONE_LINE_MIB", 0);
    if (mib) many_lines(block, (uint64_t)mib << 20);
    else if (one) one_line(block, (uint64_t)one << 20);
    else for (long i = number("MOCK_LINES", 3); i > 0; i--) put(1, block, (size_t)(line(block, 200 + chance() % 300) - block));

    nap(number("MOCK_SLEEP_MS", 0));

    char text[128];
    long at = number("MOCK_PROMISE_AT", 0);
    if (at && iteration >= at) snprintf(text, sizeof text, "All work is finished.\n<promise>COMPLETE</promise>\n");
    else snprintf(text, sizeof text, "Iteration %ld: still working.\n", iteration);
    put(1, text, strlen(text));

    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(text, sizeof text, "%lld%09ld\n", (long long)t.tv_sec, t.tv_nsec);
    append("MOCK_EXITFILE", text);
    return 0;
}
