/* A server that generates nothing, on an exact schedule: what a perfect client would measure is known.

   cc -O2 -o null_server null_server.c && ./null_server PORT STREAMS INTERVAL_US CHUNKS TOKENS

   Every INTERVAL_US one tick: each request that is being answered gets its next chunk of TOKENS tokens, all in the
   same instant, as a decode step does; after CHUNKS chunks its answer ends. The ticks begin when STREAMS requests
   have come. INTERVAL_US 0: as fast as the clients read. POST /generate answers as SGLang does (cumulative text, or
   with "incremental": true in the request only what is new), POST /v1/chat/completions as OpenAI's. Connections are
   kept alive. A slow client never holds up the others: what it does not take is buffered. On SIGTERM it tells how
   late its worst tick was. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MOST 8192            /* connections */
#define PENDING_LIMIT 262144 /* bytes a client may be behind when there is no schedule */

typedef struct {
  int open, answering, chat, cumulative, sent;
  char *in, *out;
  size_t in_len, in_cap, out_at, out_len, out_cap;
} Connection;

static Connection connections[MOST];
static int poller, streams, chunks, tokens, answering, ticking;
static long interval_us;
static long long worst_late, next_tick;
static volatile sig_atomic_t stopping;

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void stop(int number) {
  (void)number;
  stopping = 1;
}

static void drop(int fd) {
  Connection *c = &connections[fd];
  if (c->answering) answering--;
  free(c->in);
  free(c->out);
  memset(c, 0, sizeof *c);
  close(fd);
}

static void want(int fd, int write) {
  struct epoll_event e = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.fd = fd};
  epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e);
}

/* 0: the connection is gone */
static int flush(int fd) {
  Connection *c = &connections[fd];
  while (c->out_at < c->out_len) {
    ssize_t n = send(fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      want(fd, 1);
      return 1;
    }
    if (n <= 0) {
      drop(fd);
      return 0;
    }
    c->out_at += n;
  }
  c->out_at = c->out_len = 0;
  return 1;
}

static void put(int fd, const char *data, size_t length) {
  Connection *c = &connections[fd];
  if (c->out_len + length > c->out_cap) {
    if (c->out_at) {
      memmove(c->out, c->out + c->out_at, c->out_len - c->out_at);
      c->out_len -= c->out_at;
      c->out_at = 0;
    }
    while (c->out_len + length > c->out_cap) c->out_cap = c->out_cap ? 2 * c->out_cap : 65536;
    c->out = realloc(c->out, c->out_cap);
  }
  memcpy(c->out + c->out_len, data, length);
  c->out_len += length;
}

static void put_chunk(int fd, const char *data, size_t length) {
  char size[24];
  put(fd, size, sprintf(size, "%zx\r\n", length));
  put(fd, data, length);
  put(fd, "\r\n", 2);
}

/* the next event of an answer */
static void advance(int fd) {
  static char *event, *text;
  static size_t most;
  Connection *c = &connections[fd];
  size_t letters = (size_t)(c->sent + 1) * tokens * 4;
  if (letters + 1024 > most) {
    most = letters + (1 << 16);
    event = realloc(event, most + 1024);
    text = realloc(text, most);
    memset(text, 'x', most);
  }
  c->sent++;
  int count = c->sent * tokens, last = c->sent == chunks, n;
  if (c->chat)
    n = sprintf(event,
                "data: {\"id\":\"0123456789abcdef0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":"
                "1760000000,\"model\":\"default\",\"choices\":[{\"index\":0,\"delta\":{\"role\":null,\"content\":\"%.*s\","
                "\"reasoning_content\":null,\"tool_calls\":null},\"logprobs\":null,\"finish_reason\":%s,\"matched_stop\":"
                "null}],\"usage\":{\"prompt_tokens\":16,\"total_tokens\":%d,\"completion_tokens\":%d}}\n\n",
                tokens * 4, text, last ? "\"length\"" : "null", 16 + count, count);
  else
    n = sprintf(event,
                "data: {\"text\":\"%.*s\",\"meta_info\":{\"id\":\"0123456789abcdef0123456789abcdef\",\"finish_reason\":%s,"
                "\"prompt_tokens\":16,\"weight_version\":\"default\",\"total_retractions\":0,\"completion_tokens\":%d,"
                "\"cached_tokens\":0,\"dp_rank\":null}}\n\n",
                c->cumulative ? (int)letters : tokens * 4, text, last ? "{\"type\":\"length\"}" : "null", count);
  put_chunk(fd, event, n);
  if (last) {
    put_chunk(fd, "data: [DONE]\n\n", 14);
    put(fd, "0\r\n\r\n", 5);
    c->answering = 0;
    answering--;
  }
  if (flush(fd) && c->out_at < c->out_len) want(fd, 1);
}

static void request(int fd) {
  static const char head[] =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
  Connection *c = &connections[fd];
  for (;;) {
    if (c->in_cap - c->in_len < 65536) c->in = realloc(c->in, c->in_cap = c->in_cap ? 2 * c->in_cap : 131072);
    ssize_t n = recv(fd, c->in + c->in_len, c->in_cap - c->in_len - 1, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
      drop(fd);
      return;
    }
    if (n < 0) break;
    c->in_len += n;
    c->in[c->in_len] = 0;
  }
  char *end = strstr(c->in, "\r\n\r\n");
  if (!end || c->answering) return;
  char *length = strcasestr(c->in, "content-length:");
  size_t whole = end + 4 - c->in + (length && length < end ? strtoul(length + 15, 0, 10) : 0);
  if (c->in_len < whole) return;
  c->chat = !strncmp(c->in, "POST /v1/", 9);
  c->cumulative = !strstr(end, "\"incremental\"");
  memmove(c->in, c->in + whole, c->in_len - whole + 1);
  c->in_len -= whole;
  c->sent = 0;
  c->answering = 1;
  answering++;
  put(fd, head, sizeof head - 1);
  flush(fd);
}

static void tick(void) {
  for (int fd = 0; fd < MOST; fd++)
    if (connections[fd].answering && (interval_us || connections[fd].out_len - connections[fd].out_at < PENDING_LIMIT))
      advance(fd);
}

int main(int count, char **argument) {
  if (count != 6) {
    fprintf(stderr, "usage: null_server PORT STREAMS INTERVAL_US CHUNKS TOKENS\n");
    return 2;
  }
  streams = atoi(argument[2]);
  interval_us = atol(argument[3]);
  chunks = atoi(argument[4]);
  tokens = atoi(argument[5]);
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, 0);
  sigaction(SIGINT, &action, 0);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(atoi(argument[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) {
    perror("null_server");
    return 1;
  }
  poller = epoll_create1(0);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  e.data.fd = timer;
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &e);
  printf("listening\n");
  fflush(stdout);
  while (!stopping) {
    static struct epoll_event events[1024];
    int n = epoll_wait(poller, events, 1024, ticking && !interval_us && answering ? 0 : -1);
    for (int i = 0; i < n; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        int new;
        while ((new = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
          if (new >= MOST) {
            close(new);
            continue;
          }
          setsockopt(new, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          struct epoll_event in = {.events = EPOLLIN, .data.fd = new};
          epoll_ctl(poller, EPOLL_CTL_ADD, new, &in);
          connections[new].open = 1;
        }
      } else if (fd == timer) {
        unsigned long long times;
        if (read(timer, &times, sizeof times) == sizeof times) {
          long long late = now_ns() - next_tick;
          next_tick += (long long)times * interval_us * 1000;
          tick();
          if (late > worst_late) worst_late = late;
        }
      } else if (connections[fd].open) {
        if (events[i].events & EPOLLOUT) {
          want(fd, 0);
          if (!flush(fd)) continue;
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) request(fd);
      }
    }
    if (!ticking && answering >= streams) {
      ticking = 1;
      if (interval_us) {
        next_tick = now_ns() + 200000000LL;
        struct itimerspec when = {
            .it_interval = {interval_us / 1000000, interval_us % 1000000 * 1000},
            .it_value = {next_tick / 1000000000LL, next_tick % 1000000000LL}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, 0);
      }
    } else if (ticking && !answering) {
      ticking = 0; /* the next wave waits for all of its streams */
      struct itimerspec never = {{0, 0}, {0, 0}};
      if (interval_us) timerfd_settime(timer, 0, &never, 0);
    }
    if (ticking && !interval_us) tick();
  }
  fprintf(stderr, "null_server: worst tick %.2f ms late\n", worst_late / 1e6);
  return 0;
}
