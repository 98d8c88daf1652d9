/* Readable names of the message kinds. */
#include "geotrain/link.h"
#include "geotrain/record.h"

#define KINDS(X)                                                                                   \
  X(GT_MSG_UPDATE, "update")                                                                       \
  X(GT_MSG_STATE, "state")                                                                         \
  X(GT_MSG_HELLO, "hello")                                                                         \
  X(GT_MSG_ACK, "ack")                                                                             \
  X(GT_MSG_PING, "ping")                                                                           \
  X(GT_MSG_PONG, "pong")                                                                           \
  X(GT_MSG_ROUND, "round")                                                                         \
  X(GT_MSG_WRITTEN, "written")                                                                     \
  X(GT_MSG_DONE, "done")                                                                           \
  X(GT_MSG_JOINED, "joined")                                                                       \
  X(GT_MSG_BYE, "bye")                                                                             \
  X(GT_MSG_STRATEGY, "strategy")                                                                   \
  X(GT_MSG_ADAPT, "adapt")                                                                         \
  X(GT_MSG_MEMBERS, "members")                                                                     \
  X(GT_MSG_SCORE, "score")                                                                         \
  X(GT_MSG_REPORT, "report")                                                                       \
  X(GT_MSG_MODEL, "model")                                                                         \
  X(GT_MSG_ACTIVATION, "activation")                                                               \
  X(GT_MSG_ACT_GRADIENT, "act_gradient")                                                           \
  X(GT_MSG_GROUP, "group")

#define NAME(kind, name) [kind] = name,
#define ONE(kind, name)  +1
static const char *const names[] = {KINDS(NAME)};
_Static_assert(KINDS(ONE) <= GT_RESULT_KINDS, "a link's result has no room for every kind");

const char *gt_record_kind_name(unsigned kind) {
  return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}
