/*
 * loadgen: replays requests that were encoded beforehand against Kafka-protocol brokers, and measures the answers.
 *
 * It knows of the protocol only what every request and answer share: a 4-byte size, and a correlation id at byte 4 of
 * an answer and at byte 8 of a request. What an answer must hold is told by the template of its request: its least
 * size, where its error code stands, and (optionally) one 64-bit value. One thread, one epoll, no allocation while it
 * measures, so that it takes as little as possible of the machine it shares with the broker.
 *
 * Template file, integers in the machine's byte order: u32 count, then per template
 *     u32 request_size, u32 error_at, u32 least_size, u32 value_at (0: no value), i64 value, u32 broker, request_size
 *     bytes.
 * Positions and sizes of answers include the 4-byte size field. `broker` counts the ports of --port from 0. Connection
 * c is one to broker c % brokers, and asks it only what it is meant to be asked: the i-th request of its n-th connection
 * is its template (n + i * its connections) % count.
 *
 * Compiled with -DTLS it speaks TLS (loadgen_tls.h).
 *
 * The result is one JSON object on standard output. Latencies are log-linear buckets, [lowest_ns, width_ns, count].
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    REQUEST_HEAD = 12,      /* size, api key, api version, correlation id: the part that is patched */
    ANSWER_HEAD = 512,      /* bytes of an answer kept for its checks */
    SCRATCH = 128 * 1024,   /* one read; small enough to stay in the second-level cache */
    WRITE_PARTS = 64,       /* buffers in one writev */
    EVENTS = 256,           /* sockets in one turn */
    SUB_BITS = 6,           /* 64 buckets for each power of two: at most 1.6 % wide */
    BUCKETS = (64 - SUB_BITS + 1) << SUB_BITS,
    BROKERS = 16,           /* at most */
};

struct template {
    uint32_t request_size, error_at, least_size, value_at;
    int64_t value;
    const uint8_t *request;
};

/* One request in flight. */
struct slot {
    const struct template *template;
    uint64_t started_ns;
    uint8_t head[REQUEST_HEAD];
};

struct connection {
    int fd;
    void *transport;                    /* OpenSSL's, with -DTLS */
    bool wants_write;
    struct broker *broker;
    uint32_t number, index;             /* among all, and among those of its broker */
    uint32_t issued, answered;          /* request numbers: slots[answered % depth] is the oldest in flight */
    uint32_t written;                   /* requests whose every byte has left */
    size_t written_bytes;               /* bytes of request number `written` that have left */
    struct slot *slots;
    uint64_t answer_size, answer_read;  /* of the answer that is arriving; size 0 until its first 4 bytes are here */
    uint8_t answer[ANSWER_HEAD];
};

struct broker {
    char *port;
    struct template **templates;
    uint32_t template_count, connections;
};

static struct {
    const char *host, *templates_path;
    uint32_t connections, depth;
    uint32_t requests;                  /* of each connection, after which the run ends; 0: no limit */
    double seconds, warmup_seconds, rate;
    pid_t pids[BROKERS];                /* of the brokers, for their CPU time */
    uint32_t pid_count;
    bool idle;
} options = {.host = "127.0.0.1", .connections = 1, .depth = 1, .seconds = 3, .warmup_seconds = 0};

static struct broker brokers[BROKERS];
static uint32_t broker_count;
static struct template *templates;
static uint32_t template_count;
static uint64_t buckets[BUCKETS];
static struct { uint64_t answers, errors, sent_bytes, received_bytes; } totals;
static char first_error[200];
static uint8_t scratch[SCRATCH];

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("loadgen: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        die("clock: %s", strerror(errno));
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* CPU time of every thread, living and gone, of the brokers. */
static uint64_t broker_cpu_ns(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < options.pid_count; i++) {
        clockid_t clock;
        if (clock_getcpuclockid(options.pids[i], &clock) != 0)
            die("no process %d", (int)options.pids[i]);
        sum += clock_ns(clock);
    }
    return sum;
}

#include "loadgen_tls.h"

/* ---- histogram ---- */

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 1u << SUB_BITS)
        return (uint32_t)ns;
    uint32_t shift = 63u - (uint32_t)__builtin_clzll(ns) - SUB_BITS;
    return ((shift + 1) << SUB_BITS) + (uint32_t)((ns >> shift) - (1u << SUB_BITS));
}

static void print_buckets(void)
{
    const char *separator = "";
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (buckets[i] == 0)
            continue;
        uint32_t shift = i >> SUB_BITS ? (i >> SUB_BITS) - 1 : 0;
        uint64_t low = i >> SUB_BITS ? (uint64_t)((1u << SUB_BITS) + (i & ((1u << SUB_BITS) - 1))) << shift : i;
        printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", separator, low, (uint64_t)1 << shift, buckets[i]);
        separator = ",";
    }
}

/* ---- templates and connections ---- */

static void load_templates(void)
{
    FILE *file = fopen(options.templates_path, "rb");
    if (file == NULL || fread(&template_count, 4, 1, file) != 1 || template_count == 0)
        die("cannot read templates from %s", options.templates_path);
    templates = calloc(template_count, sizeof *templates);
    for (uint32_t i = 0; i < template_count; i++) {
        struct template *t = &templates[i];
        uint32_t broker;
        if (fread(&t->request_size, 4, 4, file) != 4 || fread(&t->value, 8, 1, file) != 1 || fread(&broker, 4, 1, file) != 1)
            die("template %u is cut short", i);
        if (broker >= broker_count)
            die("template %u is for broker %u of %u", i, broker, broker_count);
        uint8_t *request = malloc(t->request_size);
        if (t->request_size < REQUEST_HEAD || request == NULL || fread(request, 1, t->request_size, file) != t->request_size)
            die("template %u: its request is cut short", i);
        if (t->error_at + 2 > ANSWER_HEAD || t->value_at + 8 > ANSWER_HEAD)
            die("template %u: a check lies behind byte %d", i, ANSWER_HEAD);
        t->request = request;
        struct broker *b = &brokers[broker];
        b->templates = realloc(b->templates, (b->template_count + 1) * sizeof *b->templates);
        if (b->templates == NULL)
            die("no memory for template %u", i);
        b->templates[b->template_count++] = t;
    }
    fclose(file);
}

static int connect_to_broker(const struct broker *broker)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int problem = getaddrinfo(options.host, broker->port, &hints, &list);
    if (problem != 0)
        die("%s:%s: %s", options.host, broker->port, gai_strerror(problem));
    int fd = -1;
    for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0)
        die("cannot connect to %s:%s: %s", options.host, broker->port, strerror(errno));
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void watch(int epoll, int operation, struct connection *c, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(epoll, operation, c->fd, &event) != 0)
        die("epoll: %s", strerror(errno));
}

static struct connection *open_connections(int epoll)
{
    struct connection *all = calloc(options.connections, sizeof *all);
    for (uint32_t i = 0; i < options.connections; i++) {
        struct connection *c = &all[i];
        c->number = i;
        c->broker = &brokers[i % broker_count];
        if (c->broker->template_count == 0)
            die("there is no template for broker %u", i % broker_count);
        c->index = c->broker->connections++;
        c->slots = calloc(options.depth, sizeof *c->slots);
        c->fd = connect_to_broker(c->broker);
        begin_transport(c);
        fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
        watch(epoll, EPOLL_CTL_ADD, c, EPOLLIN);
    }
    return all;
}

/* ---- requests ---- */

static bool may_issue(const struct connection *c)
{
    return c->issued - c->answered < options.depth && (options.requests == 0 || c->issued < options.requests);
}

static void issue(struct connection *c, uint64_t started_ns)
{
    struct slot *s = &c->slots[c->issued % options.depth];
    uint64_t turn = (uint64_t)c->index + (uint64_t)c->issued * c->broker->connections;
    uint32_t correlation_id = htobe32(c->issued);
    s->template = c->broker->templates[turn % c->broker->template_count];
    s->started_ns = started_ns;
    memcpy(s->head, s->template->request, REQUEST_HEAD);
    memcpy(s->head + 8, &correlation_id, 4);
    c->issued++;
}

/* Writes what is issued until everything has left or the socket is full. */
static void write_issued(int epoll, struct connection *c)
{
    while (c->written < c->issued) {
        struct iovec parts[WRITE_PARTS];
        int count = 0;
        size_t skip = c->written_bytes;
        for (uint32_t i = c->written; i < c->issued && count + 2 <= WRITE_PARTS; i++) {
            struct slot *s = &c->slots[i % options.depth];
            if (skip < REQUEST_HEAD)
                parts[count++] = (struct iovec){s->head + skip, REQUEST_HEAD - skip};
            size_t from = skip > REQUEST_HEAD ? skip : REQUEST_HEAD;
            parts[count++] = (struct iovec){(void *)(s->template->request + from), s->template->request_size - from};
            skip = 0;
        }
        ssize_t n = send_parts(c, parts, count);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            die("the broker closed connection %u: %s", c->number, strerror(errno));
        totals.sent_bytes += (uint64_t)n;
        c->written_bytes += (size_t)n;
        while (c->written < c->issued && c->written_bytes >= c->slots[c->written % options.depth].template->request_size) {
            c->written_bytes -= c->slots[c->written % options.depth].template->request_size;
            c->written++;
        }
    }
    bool wants_write = c->written < c->issued;
    if (wants_write != c->wants_write) {
        c->wants_write = wants_write;
        watch(epoll, EPOLL_CTL_MOD, c, wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
}

/* ---- answers ---- */

static void count_error(const struct template *t, const char *what, long long value)
{
    if (totals.errors++ == 0)
        snprintf(first_error, sizeof first_error, "template %ld: %s %lld", (long)(t - templates), what, value);
}

static void check_answer(struct connection *c, uint64_t at_ns)
{
    const struct slot *s = &c->slots[c->answered % options.depth];
    const struct template *t = s->template;
    uint32_t correlation_id;
    memcpy(&correlation_id, c->answer + 4, 4);
    if (c->issued == c->answered || be32toh(correlation_id) != c->answered)
        die("connection %u: correlation id %u where %u was due", c->number, be32toh(correlation_id), c->answered);
    uint16_t error_code;
    int64_t value;
    memcpy(&error_code, c->answer + t->error_at, 2);
    memcpy(&value, c->answer + t->value_at, 8);
    error_code = be16toh(error_code);
    value = (int64_t)be64toh((uint64_t)value);
    if (c->answer_size < t->error_at + 2)
        count_error(t, "an answer without an error code, of bytes", (long long)c->answer_size);
    else if (error_code != 0)
        count_error(t, "error code", (int16_t)error_code);
    else if (c->answer_size < t->least_size)
        count_error(t, "an answer too small, of bytes", (long long)c->answer_size);
    else if (t->value_at != 0 && value != t->value)
        count_error(t, "an unexpected value", (long long)value);
    else
        totals.answers++;
    buckets[bucket_of(at_ns - s->started_ns)]++;
    c->answered++;
}

/* Takes apart what was read: whole answers are checked, of a part its head is kept. */
static void take(struct connection *c, const uint8_t *bytes, size_t size, uint64_t at_ns)
{
    while (size > 0) {
        size_t want = c->answer_size ? (size_t)(c->answer_size - c->answer_read) : (size_t)(4 - c->answer_read);
        size_t n = want < size ? want : size;
        if (c->answer_read < ANSWER_HEAD) {
            size_t room = ANSWER_HEAD - (size_t)c->answer_read;
            memcpy(c->answer + c->answer_read, bytes, n < room ? n : room);
        }
        c->answer_read += n;
        bytes += n;
        size -= n;
        if (c->answer_size == 0 && c->answer_read == 4) {
            uint32_t after;
            memcpy(&after, c->answer, 4);
            c->answer_size = 4 + (uint64_t)be32toh(after);
            if (c->answer_size < 8 || c->answer_size > 1u << 30)
                die("connection %u: an answer of %" PRIu64 " bytes", c->number, c->answer_size);
        } else if (c->answer_read == c->answer_size) {
            check_answer(c, at_ns);
            c->answer_size = c->answer_read = 0;
        }
    }
}

static void read_answers(struct connection *c)
{
    do {
        ssize_t n = receive_some(c);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            die("the broker closed connection %u: %s", c->number, n == 0 ? "end of stream" : strerror(errno));
        if (n > 0) {
            totals.received_bytes += (uint64_t)n;
            take(c, scratch, (size_t)n, now_ns());
        }
        if (n < 0)
            break;
    } while (may_hold_more(c));
}

/* ---- modes ---- */

static int open_pace(int epoll)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    long interval_ns = (long)(1e9 / options.rate);
    struct timespec interval = {.tv_sec = interval_ns / 1000000000, .tv_nsec = interval_ns % 1000000000};
    struct itimerspec pace = {.it_interval = interval, .it_value = interval};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (timer < 0 || timerfd_settime(timer, 0, &pace, NULL) != 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0)
        die("timer: %s", strerror(errno));
    return timer;
}

/*
 * Issues the requests that the timer made due, on the connections in turn. One that is sent at its wake-up starts its
 * clock then; one that came late, because the generator slept or its connection was full, starts when it was due.
 */
static void issue_paced(int epoll, struct connection *all, int timer)
{
    static uint64_t waiting, next;
    uint64_t due = 0, now = now_ns(), interval_ns = (uint64_t)(1e9 / options.rate);
    if (read(timer, &due, sizeof due) == (ssize_t)sizeof due)
        waiting += due;
    for (; waiting > 0; waiting--, next++) {
        struct connection *c = &all[next % options.connections];
        if (!may_issue(c))
            break;
        issue(c, now - (waiting - 1) * interval_ns);
        write_issued(epoll, c);
    }
}

static void forget_totals(void)
{
    memset(buckets, 0, sizeof buckets);
    memset(&totals, 0, sizeof totals);
    first_error[0] = 0;
}

static void print_result(uint64_t elapsed_ns, uint64_t broker_ns, uint64_t own_ns)
{
    printf("{\"seconds\": %.6f, \"answers\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"first_error\": \"%s\", ",
           (double)elapsed_ns / 1e9, totals.answers, totals.errors, first_error);
    printf("\"sent_bytes\": %" PRIu64 ", \"received_bytes\": %" PRIu64 ", ", totals.sent_bytes, totals.received_bytes);
    printf("\"broker_cpu_seconds\": %.6f, \"generator_cpu_seconds\": %.6f, \"buckets\": [", (double)broker_ns / 1e9, (double)own_ns / 1e9);
    print_buckets();
    puts("]}");
}

static void run(void)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct connection *all = open_connections(epoll);
    int timer = options.rate > 0 ? open_pace(epoll) : -1;
    bool warm = options.warmup_seconds <= 0;
    uint64_t begin = now_ns(), cpu = broker_cpu_ns(), own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t end = begin + (uint64_t)((warm ? options.seconds : options.warmup_seconds) * 1e9);

    for (uint32_t i = 0; timer < 0 && i < options.connections; i++) {
        while (may_issue(&all[i]))
            issue(&all[i], now_ns());
        write_issued(epoll, &all[i]);
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (c == NULL) {
                issue_paced(epoll, all, timer);
                continue;
            }
            if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
                read_answers(c);
            while (timer < 0 && may_issue(c))
                issue(c, now_ns());
            write_issued(epoll, c);
        }
        uint64_t now = now_ns();
        if (options.requests != 0 && totals.answers + totals.errors >= (uint64_t)options.requests * options.connections)
            end = now;
        if (now < end)
            continue;
        if (warm) {
            print_result(now - begin, broker_cpu_ns() - cpu, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own);
            return;
        }
        warm = true;
        forget_totals();
        begin = now_ns();
        cpu = broker_cpu_ns();
        own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        end = begin + (uint64_t)(options.seconds * 1e9);
    }
}

/* Opens the connections, gets one answer on each, says "ready", and holds them until standard input ends. */
static void hold_idle(void)
{
    const struct template *t = &templates[0];
    for (uint32_t i = 0; i < options.connections; i++) {
        int fd = connect_to_broker(&brokers[0]);
        uint32_t size;
        if (write(fd, t->request, t->request_size) != (ssize_t)t->request_size || recv(fd, &size, 4, MSG_WAITALL) != 4)
            die("idle connection %u got no answer", i);
        size = be32toh(size);
        if (size < 4 || size > SCRATCH || recv(fd, scratch, size, MSG_WAITALL) != (ssize_t)size)
            die("idle connection %u: an answer of %u bytes", i, size);
    }
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, scratch, SCRATCH) > 0)
        continue;
}

/* Calls `take` with each part of `text`, which commas divide. */
static void each_part(char *text, void (*take)(char *))
{
    for (char *part = strtok(text, ","); part != NULL; part = strtok(NULL, ","))
        take(part);
}

static void take_port(char *port)
{
    if (broker_count == BROKERS)
        die("more than %d ports", BROKERS);
    brokers[broker_count++].port = port;
}

static void take_pid(char *pid)
{
    if (options.pid_count == BROKERS)
        die("more than %d processes", BROKERS);
    options.pids[options.pid_count++] = (pid_t)atoi(pid);
}

static void parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"host", 1, 0, 'h'}, {"port", 1, 0, 'p'}, {"templates", 1, 0, 't'}, {"connections", 1, 0, 'c'},
        {"depth", 1, 0, 'd'}, {"seconds", 1, 0, 's'}, {"warmup", 1, 0, 'w'}, {"rate", 1, 0, 'r'},
        {"requests", 1, 0, 'n'}, {"pid", 1, 0, 'P'}, {"idle", 0, 0, 'i'}, {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'h': options.host = optarg; break;
        case 'p': each_part(optarg, take_port); break;
        case 't': options.templates_path = optarg; break;
        case 'c': options.connections = (uint32_t)atoi(optarg); break;
        case 'd': options.depth = (uint32_t)atoi(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'w': options.warmup_seconds = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'n': options.requests = (uint32_t)atoi(optarg); break;
        case 'P': each_part(optarg, take_pid); break;
        case 'i': options.idle = true; break;
        default: die("usage: loadgen --port PORT,... --templates FILE [--host H] [--connections N] [--depth D] [--seconds S] "
                     "[--warmup S] [--rate PER_SECOND] [--requests PER_CONNECTION] [--pid BROKER,...] [--idle]");
        }
    }
    if (broker_count == 0 || options.templates_path == NULL || options.connections == 0 || options.depth == 0)
        die("--port and --templates are needed; --connections and --depth are at least 1");
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    load_templates();
    if (options.idle)
        hold_idle();
    else
        run();
    return 0;
}
