/* Dialling through an HTTP proxy: the request, and every kind of answer. */
#include <netinet/in.h>
#include <unistd.h>

#include "connection.h"
#include "tests.h"

/* Dials a proxy that answers so, in single bytes; returns what the dialler makes of it, and writes
   why. */
static int through_proxy(const char *answer, char fault[160]) {
  static const char wanted[] =
      "CONNECT eu.example.org:7443 HTTP/1.1\r\nHost: eu.example.org:7443\r\n\r\n";
  char request[256] = "";
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
  gt_connection c = {.fd = -1};
  assert_int_equal(gt_connection_dial(&c, (struct sockaddr *)&at, sizeof at, "eu.example.org:7443"),
                   1);
  const int proxy = accept(listener, NULL, NULL);
  int done = 0;
  for (; done == 0 && !c.answer.asked; gt_sleep(10000))
    done = gt_connection_advance(&c, NULL, false);
  assert_int_equal(recv(proxy, request, sizeof request - 1, 0), sizeof wanted - 1);
  assert_string_equal(request, wanted);
  for (size_t i = 0; i < strlen(answer) && done == 0; i++) {
    assert_int_equal(send(proxy, answer + i, 1, MSG_NOSIGNAL), 1);
    done = gt_connection_advance(&c, NULL, false);
  }
  assert_int_equal(shutdown(proxy, SHUT_WR), 0);
  for (int i = 0; i < 1000 && done == 0; i++, gt_sleep(10000))
    done = gt_connection_advance(&c, NULL, false);
  memcpy(fault, c.fault, sizeof c.fault);
  gt_connection_close(&c);
  close(proxy);
  close(listener);
  return done;
}

static void proxies_that_connect(void) {
  char fault[160];
  assert_int_equal(through_proxy("HTTP/1.1 200 OK\r\n\r\n", fault), 1);
  assert_int_equal(through_proxy("HTTP/1.0 200 Connected\r\nVia: x\r\nDate: y\r\n\r\n", fault), 1);
}

static void proxies_that_refuse(void) {
  char fault[160], endless[9000];
  assert_int_equal(through_proxy("HTTP/1.1 407 Who\x1b are you?\r\nA: b\r\n\r\n", fault), -1);
  assert_string_equal(fault, "the proxy answers \"HTTP/1.1 407 Who? are you?\"");
  assert_int_equal(through_proxy("HTTP/1.1 2000\r\n\r\n", fault), -1);
  assert_int_equal(through_proxy("HTTP/1.1 200", fault), -1);
  assert_string_equal(fault, "the proxy has closed the connection");
  assert_int_equal(through_proxy("SSH-2.0-x\r\n\r\n", fault), -1);
  memset(endless, 'a', sizeof endless);
  endless[sizeof endless - 1] = '\0';
  assert_int_equal(through_proxy(endless, fault), -1);
  assert_string_equal(fault, "the proxy's answer does not end");
}

TESTS(proxies_that_connect, proxies_that_refuse)
