/*
 * How loadgen's bytes go and come: by the socket itself, or, compiled with -DTLS, through OpenSSL. Certificates are not
 * verified: what is measured is the broker.
 */
#ifdef TLS
#include <openssl/err.h>
#include <openssl/ssl.h>

/* What an attempt came to, as the calls of sockets say it. */
static ssize_t outcome(SSL *tls, int n)
{
    if (n > 0)
        return n;
    int problem = SSL_get_error(tls, n);
    if (problem == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

/* A handshake on a socket that blocks. */
static void begin_transport(struct connection *c)
{
    static SSL_CTX *context;
    if (context == NULL && (context = SSL_CTX_new(TLS_client_method())) == NULL)
        die("no TLS");
    SSL *tls = SSL_new(context);
    SSL_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_fd(tls, c->fd);
    if (SSL_connect(tls) != 1)
        die("connection %u: no TLS: %s", c->number, ERR_reason_error_string(ERR_get_error()));
    c->transport = tls;
}

/* Copies the parts together: each would be a record of its own. */
static ssize_t send_parts(struct connection *c, const struct iovec *parts, int count)
{
    static uint8_t together[SCRATCH];
    size_t size = 0;
    for (int i = 0; i < count && size < sizeof together; i++) {
        size_t room = sizeof together - size, n = parts[i].iov_len < room ? parts[i].iov_len : room;
        memcpy(together + size, parts[i].iov_base, n);
        size += n;
    }
    return outcome(c->transport, SSL_write(c->transport, together, (int)size));
}

static ssize_t receive_some(struct connection *c) { return outcome(c->transport, SSL_read(c->transport, scratch, SCRATCH)); }

/* OpenSSL may hold records that the socket does not tell of any more. */
static bool may_hold_more(struct connection *c) { return SSL_pending(c->transport) > 0 || SSL_has_pending(c->transport); }

#else

static void begin_transport(struct connection *c) { (void)c; }
static ssize_t send_parts(struct connection *c, const struct iovec *parts, int count) { return writev(c->fd, parts, count); }
static ssize_t receive_some(struct connection *c) { return recv(c->fd, scratch, SCRATCH, 0); }
static bool may_hold_more(struct connection *c) { (void)c; return false; }

#endif
