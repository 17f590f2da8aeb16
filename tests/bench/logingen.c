/*
 * logingen: opens connections to one Kafka-protocol broker, lets each come to one end, closes it and opens the next.
 *
 * With --tls that end is the answer to --hello, the file of one request, after a full TLS handshake. With --scram
 * sha256|sha512 it is a login by SASL SCRAM of --user, who proves that it knows --client-key: the key comes from a
 * password and salt that the caller knows, so that its 4096 iterations do not weigh on the generator. One thread, one epoll.
 *
 * The result is one JSON object on standard output.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, EVENTS = 256, NO_TIME_MS = 20000 };

struct connection {
    int fd;
    SSL *tls;
    bool is_up;              /* connected, and with TLS shaken hands */
    int step;                /* requests that were sent */
    uint8_t answer[BYTES];
    size_t answer_read;
    char bare[300];          /* the first message of SCRAM without its header */
};

static struct {
    uint16_t port;
    uint32_t connections;
    double seconds, warmup_seconds;
    pid_t pid;
    bool tls;
    const char *hello_path, *scram, *user, *client_key;
} options = {.connections = 8, .seconds = 3};

static uint8_t hello[BYTES], client_key[EVP_MAX_MD_SIZE], stored_key[EVP_MAX_MD_SIZE];
static size_t hello_size;
static unsigned key_size;
static const EVP_MD *hash;
static SSL_CTX *context;
static uint64_t ended, number;
static int epoll;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("logingen: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        die("clock: %s", strerror(errno));
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double broker_cpu(void)
{
    clockid_t clock;
    if (options.pid == 0)
        return 0;
    if (clock_getcpuclockid(options.pid, &clock) != 0)
        die("no process %d", (int)options.pid);
    return seconds_of(clock);
}

/* ---- requests ---- */

static size_t put_int(uint8_t *at, uint32_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
    return size;
}

/* Size, header of version 1 and a body of a string (`width` 2) or of bytes (`width` 4). */
static size_t request(uint8_t *made, uint16_t key, uint16_t version, const void *body, size_t size, size_t width)
{
    size_t n = 4;
    n += put_int(made + n, key, 2);
    n += put_int(made + n, version, 2);
    n += put_int(made + n, (uint32_t)number, 4);
    n += put_int(made + n, 5, 2);
    memcpy(made + n, "bench", 5);
    n += 5;
    n += put_int(made + n, (uint32_t)size, width);
    memcpy(made + n, body, size);
    put_int(made, (uint32_t)(n + size - 4), 4);
    return n + size;
}

/* The final message: the proof is the client's key, covered by a signature of all that was said. */
static int final_message(struct connection *c, char *message, size_t room, const char *server_first, int server_size)
{
    const char *nonce_end = memchr(server_first, ',', (size_t)server_size);
    char said[BYTES];
    uint8_t proof[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
    if (nonce_end == NULL)
        die("no SCRAM: %.*s", server_size, server_first);
    int n = snprintf(message, room, "c=biws,%.*s", (int)(nonce_end - server_first), server_first);
    int said_size = snprintf(said, sizeof said, "%s,%.*s,%s", c->bare, server_size, server_first, message);
    HMAC(hash, stored_key, (int)key_size, (uint8_t *)said, (size_t)said_size, proof, NULL);
    for (unsigned i = 0; i < key_size; i++)
        proof[i] ^= client_key[i];
    EVP_EncodeBlock(text, proof, (int)key_size);
    return n + snprintf(message + n, room - (size_t)n, ",p=%s", text);
}

static void send_all(struct connection *c, const uint8_t *bytes, size_t size)
{
    ssize_t n = c->tls ? SSL_write(c->tls, bytes, (int)size) : send(c->fd, bytes, size, MSG_NOSIGNAL);
    if (n != (ssize_t)size)
        die("a request of %zu bytes was not sent: %s", size, strerror(errno));
}

/* Sends the next request; false if there is none. */
static bool send_next(struct connection *c)
{
    uint8_t made[BYTES];
    char text[BYTES];
    size_t size;
    if (options.scram == NULL) {
        if (c->step > 0)
            return false;
        send_all(c, hello, hello_size);
    } else if (c->step == 0) {
        snprintf(text, sizeof text, "SCRAM-SHA-%s", options.scram + 3);
        send_all(c, made, request(made, 17, 1, text, strlen(text), 2));
    } else if (c->step == 1) {
        snprintf(c->bare, sizeof c->bare, "n=%s,r=%016" PRIx64 "logingen", options.user, ++number);
        size = (size_t)snprintf(text, sizeof text, "n,,%s", c->bare);
        send_all(c, made, request(made, 36, 1, text, size, 4));
    } else if (c->step == 2) {
        /* Size, correlation id, error, no message, and the bytes with their length. */
        uint32_t length;
        memcpy(&length, c->answer + 12, 4);
        size = (size_t)final_message(c, text, sizeof text, (char *)c->answer + 16, (int)be32toh(length));
        send_all(c, made, request(made, 36, 1, text, size, 4));
    } else {
        return false;
    }
    c->step++;
    c->answer_read = 0;
    return true;
}

/* ---- connections ---- */

static void open_one(struct connection *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(c, 0, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        die("cannot connect: %s", strerror(errno));
    if (options.tls) {
        c->tls = SSL_new(context);
        SSL_set_fd(c->tls, c->fd);
        SSL_set_connect_state(c->tls);
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll: %s", strerror(errno));
}

static void end_one(struct connection *c)
{
    ended++;
    if (c->tls)
        SSL_free(c->tls);
    close(c->fd);
    open_one(c);
}

/* Whether the connection is up; it may have come up now. */
static bool is_up(struct connection *c, uint32_t events)
{
    if (c->is_up)
        return true;
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0)
        die("cannot connect: %s", strerror(problem));
    if (!(events & EPOLLOUT))
        return false;
    if (c->tls) {
        int n = SSL_do_handshake(c->tls);
        if (n != 1) {
            problem = SSL_get_error(c->tls, n);
            if (problem != SSL_ERROR_WANT_READ && problem != SSL_ERROR_WANT_WRITE)
                die("no TLS: %s", ERR_reason_error_string(ERR_get_error()));
            return false;
        }
    }
    c->is_up = true;
    send_next(c);
    return true;
}

static void go_on(struct connection *c, uint32_t events)
{
    if (!is_up(c, events))
        return;
    for (;;) {
        uint8_t *at = c->answer + c->answer_read;
        size_t room = BYTES - c->answer_read;
        ssize_t n = c->tls ? SSL_read(c->tls, at, (int)room) : recv(c->fd, at, room, 0);
        if (n <= 0) {
            bool waits = c->tls ? SSL_get_error(c->tls, (int)n) == SSL_ERROR_WANT_READ : n < 0 && errno == EAGAIN;
            if (!waits)
                die("the broker closed a connection after request %d", c->step);
            return;
        }
        c->answer_read += (size_t)n;
        uint32_t size = 0;
        uint16_t error = 0;
        memcpy(&size, c->answer, 4);
        if (c->answer_read < 10 || c->answer_read < 4 + (size_t)be32toh(size))
            continue;
        memcpy(&error, c->answer + 8, 2);
        if (error != 0)
            die("the answer to request %d is error %d", c->step, be16toh(error));
        if (!send_next(c)) {
            end_one(c);
            return;
        }
    }
}

static void run(void)
{
    struct connection *all = calloc(options.connections, sizeof *all);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < options.connections; i++)
        open_one(&all[i]);
    bool warm = false;
    double begin = seconds_of(CLOCK_MONOTONIC), cpu = 0, own = 0, end = begin + options.warmup_seconds;
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, NO_TIME_MS);
        if (n == 0)
            die("no answer for %d s", NO_TIME_MS / 1000);
        for (int i = 0; i < n; i++)
            go_on(events[i].data.ptr, events[i].events);
        double now = seconds_of(CLOCK_MONOTONIC);
        if (now < end)
            continue;
        if (warm)
            break;
        warm = true;
        ended = 0;
        begin = now;
        cpu = broker_cpu();
        own = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        end = now + options.seconds;
    }
    printf("{\"seconds\": %.6f, \"logins\": %" PRIu64 ", \"broker_cpu_seconds\": %.6f, \"generator_cpu_seconds\": %.6f}\n",
           seconds_of(CLOCK_MONOTONIC) - begin, ended, broker_cpu() - cpu, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - own);
}

static void prepare(void)
{
    if (options.scram != NULL) {
        long size = 0;
        hash = EVP_get_digestbyname(options.scram);
        uint8_t *bytes = options.client_key && options.user ? OPENSSL_hexstr2buf(options.client_key, &size) : NULL;
        if (hash == NULL || bytes == NULL || size != EVP_MD_size(hash))
            die("--scram sha256|sha512 needs --user and --client-key HEX of the hash's size");
        memcpy(client_key, bytes, (size_t)size);
        EVP_Digest(client_key, (size_t)size, stored_key, &key_size, hash, NULL);
        return;
    }
    FILE *file = options.hello_path ? fopen(options.hello_path, "rb") : NULL;
    if (file == NULL || (hello_size = fread(hello, 1, sizeof hello, file)) == 0)
        die("--hello FILE, or --scram, is needed");
    fclose(file);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"port", 1, 0, 'p'}, {"connections", 1, 0, 'c'}, {"seconds", 1, 0, 's'}, {"warmup", 1, 0, 'w'}, {"pid", 1, 0, 'P'},
        {"tls", 0, 0, 't'}, {"hello", 1, 0, 'h'}, {"scram", 1, 0, 'S'}, {"user", 1, 0, 'u'}, {"client-key", 1, 0, 'k'},
        {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'p': options.port = (uint16_t)atoi(optarg); break;
        case 'c': options.connections = (uint32_t)atoi(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'w': options.warmup_seconds = atof(optarg); break;
        case 'P': options.pid = (pid_t)atoi(optarg); break;
        case 't': options.tls = true; break;
        case 'h': options.hello_path = optarg; break;
        case 'S': options.scram = optarg; break;
        case 'u': options.user = optarg; break;
        case 'k': options.client_key = optarg; break;
        default: die("usage: logingen --port PORT [--tls] --hello FILE | --scram HASH --user NAME --client-key HEX");
        }
    }
    prepare();
    context = SSL_CTX_new(TLS_client_method());
    /* Each handshake is a full one. */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    run();
    return 0;
}
