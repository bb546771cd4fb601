/* meas: runs one command REPEAT times and writes what it took to OUT as one JSON object.
 *
 * usage: meas OUT TIMEOUT_S REPEAT -- cmd args...
 *
 * A tiny static launcher, because Linux counts the launcher's own memory into the child's max RSS across fork and
 * exec. It is a subreaper and reaps everything that the command left behind, so that the CPU time of a process which
 * the command did not wait for (a keeper, say) is counted too. `wall` ends with the command itself; what still lives
 * two seconds later is counted in `survivors` and killed. `maxrss_kib` is that of the largest single process, `faults`
 * are the page faults of all that needed no disk.
 * Past TIMEOUT_S the command's process group gets SIGKILL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t kid;
static volatile sig_atomic_t fired;

static void on_alarm(int s) { (void)s; fired = 1; if (kid > 0) kill(-kid, SIGKILL); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

/* Our own children that still live, killed: orphans came to us, because we are their subreaper. */
static int kill_children(void) {
    char path[64], list[65536];
    int count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 1;
    ssize_t n = read(fd, list, sizeof list - 1);
    close(fd);
    list[n > 0 ? n : 0] = 0;
    for (char *p = strtok(list, " "); p; p = strtok(NULL, " ")) { kill((pid_t)atoi(p), SIGKILL); count++; }
    return count;
}

int main(int argc, char **argv) {
    if (argc < 6 || strcmp(argv[4], "--")) { fprintf(stderr, "usage: meas OUT TIMEOUT_S REPEAT -- cmd args\n"); return 2; }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_alarm; /* without SA_RESTART: a wait must come back */
    sigaction(SIGALRM, &sa, NULL);

    int code = 0, timeout = 0, survivors = 0;
    double wall = 0;
    for (int left = atoi(argv[3]); left > 0 && !timeout; left--) {
        double from = now();
        kid = fork();
        if (kid < 0) { perror("fork"); return 2; }
        if (!kid) {
            setpgid(0, 0);
            execvp(argv[5], argv + 5);
            fprintf(stderr, "meas: %s: %s\n", argv[5], strerror(errno));
            _exit(127);
        }
        setpgid(kid, kid);
        fired = 0;
        alarm((unsigned)atoi(argv[2]));
        int status = 0;
        while (waitpid(kid, &status, 0) < 0 && errno == EINTR) {}
        wall += now() - from;
        timeout = fired;
        int rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (rc) code = rc;
        kid = 0;
        fired = 0;
        alarm(2);
        for (;;) {
            if (waitpid(-1, NULL, 0) > 0) continue;
            if (errno == ECHILD) break;
            if (errno == EINTR && fired) { survivors += kill_children(); fired = 0; alarm(2); }
        }
        alarm(0);
    }
    struct rusage ru;
    getrusage(RUSAGE_CHILDREN, &ru);
    FILE *out = fopen(argv[1], "w");
    if (!out) { perror(argv[1]); return 2; }
    fprintf(out, "{\"wall\":%.6f,\"cpu\":%.6f,\"maxrss_kib\":%ld,\"faults\":%ld,\"code\":%d,\"timeout\":%s,\"survivors\":%d}\n",
        wall, seconds(ru.ru_utime) + seconds(ru.ru_stime), ru.ru_maxrss, ru.ru_minflt, code, timeout ? "true" : "false", survivors);
    return fclose(out) ? 2 : 0;
}
