/* The relay: copies bytes between connections of two regions that both only dial. */
#pragma once

#include "tcp.h"

/* Takes a connection whose greeting is for another region; it is copied from when that region's
   has come, too. */
void gt_relay_take(gt_tcp *tcp, const gt_connection *c, const gt_tcp_record *hello);
/* Copies what the sockets take and have.  True if any pair is connected. */
bool gt_relay_pump(gt_tcp *tcp);
void gt_relay_close(gt_tcp *tcp);
