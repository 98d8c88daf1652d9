/* What the kinds of messages are called where people read of them. */
#include "geotrain/link.h"
#include "geotrain/record.h"

static const char *const names[] = {
    [GT_MSG_UPDATE] = "update", [GT_MSG_STATE] = "state",   [GT_MSG_HELLO] = "hello",     [GT_MSG_ACK] = "ack",   [GT_MSG_PING] = "ping",
    [GT_MSG_PONG] = "pong",     [GT_MSG_ROUND] = "round",   [GT_MSG_WRITTEN] = "written", [GT_MSG_DONE] = "done", [GT_MSG_JOINED] = "joined",
    [GT_MSG_BYE] = "bye",       [GT_MSG_REPORT] = "report", [GT_MSG_MODEL] = "model",
};

const char *gt_record_kind_name(unsigned kind) {
  return kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}
