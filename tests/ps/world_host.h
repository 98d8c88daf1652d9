/* What a PS of the world is served with: the gateway, the local plane, the checkpoint writer. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_HOST_H
#define GEOTRAIN_TESTS_PS_WORLD_HOST_H

#include "world.h"

/* ---- gateway --------------------------------------------------------------------------------- */

void w_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload, size_t bytes,
            uint64_t cookie);
bool w_replace(void *ctx, size_t peer, uint64_t cookie, const gt_frame_header *head,
               const void *payload, uint64_t new_cookie);
/* A message begins to leave: control first, then data. */
void w_serve(world *w, size_t from, size_t to);
/* It has left: until now its payload was borrowed. */
void w_depart(world *w, size_t from, size_t to);

/* ---- local plane ----------------------------------------------------------------------------- */

void w_order(void *ctx, size_t index, const gt_ps_order *o);
void w_taken(void *ctx, size_t index);

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* A copy that owns what the list lent. */
gt_state w_deep_copy(const gt_state *lent);
void w_forget_copy(w_region *r, size_t i);
void w_checkpoint(void *ctx, int64_t round);
void w_whole(void *ctx, int64_t round);
void w_note(void *ctx, gt_ps_note note, double a, double b);
void w_decided(void *ctx, const char *what, const char *choice, const char *why);

#endif
