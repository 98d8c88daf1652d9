/* What serves the PS: gateway, local plane, checkpoint writer. */
#include "world_host.h"

/* ---- gateway --------------------------------------------------------------------------------- */

void w_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload, size_t bytes,
            uint64_t cookie) {
  w_region *r = ctx;
  world *w = r->world;
  assert_true(peer < w->n && peer != r->id && bytes <= W_MODEL * sizeof(float));
  w_frame f = {.head = *head, .borrowed = payload, .bytes = bytes, .cookie = cookie};
  f.head.from = (uint16_t)r->id;
  f.head.message_bytes = bytes;
  assert_int_equal(cookie != 0, gt_msg_is_data(head->kind));
  if (gt_msg_is_data(head->kind)) w->links[r->id][peer].posted_value = (int64_t)head->value;
  w_push(gt_msg_is_data(head->kind) ? &w->links[r->id][peer].data : &w->links[r->id][peer].control,
         &f);
}

bool w_replace(void *ctx, size_t peer, uint64_t cookie, const gt_frame_header *head,
               const void *payload, uint64_t new_cookie) {
  w_region *r = ctx;
  w_ring *queue = &r->world->links[r->id][peer].data;
  for (size_t k = 0; k < queue->count; k++) {
    w_frame *f = w_at(queue, k);
    if (f->cookie != cookie) continue;
    f->head = *head;
    f->head.from = (uint16_t)r->id;
    f->head.message_bytes = f->bytes;
    f->borrowed = payload;
    f->cookie = new_cookie;
    r->world->links[r->id][peer].posted_value = (int64_t)head->value;
    return true;
  }
  return false;
}

void w_serve(world *w, size_t from, size_t to) {
  w_link *link = &w->links[from][to];
  if (link->leaving || link->control.count + link->data.count == 0) return;
  link->leaving = true;
  link->current = w_pop(link->control.count ? &link->control : &link->data);
  gt_link_times t =
      gt_link_step(&link->state, &w->spec.link, NULL, gt_wire_bytes(link->current.bytes), w->now);
  link->depart = t.depart;
  link->arrive = t.arrive;
}

void w_depart(world *w, size_t from, size_t to) {
  w_link *link = &w->links[from][to];
  w_frame *f = &link->current;
  if (f->borrowed) memcpy(f->body, f->borrowed, f->bytes);
  f->borrowed = NULL;
  f->at = link->arrive;
  if (f->cookie) {
    link->data_sent++;
    if (from == 0 && w->spec.poison && link->data_sent == w->spec.poison) f->body[1] = NAN;
    assert_true(link->ngone < W_RING);
    gt_ns at = w->now + (gt_ns)gt_rng_below(&w->rng, 4) * W_MS;
    if (link->ngone && link->gone[link->ngone - 1].at > at) at = link->gone[link->ngone - 1].at;
    link->gone[link->ngone].cookie = f->cookie;
    link->gone[link->ngone++].at = at;
  }
  w_push(&link->air, f);
  link->leaving = false;
}

/* ---- local plane ----------------------------------------------------------------------------- */

static gt_ns w_compute_time(world *w, const w_region *r) {
  double slow = w->spec.slow[r->id] > 0 ? w->spec.slow[r->id] : 1;
  return 1 + (gt_ns)(slow * (double)(2 * W_MS + (gt_ns)gt_rng_below(&w->rng, 10 * (uint64_t)W_MS)));
}

static void w_train(world *w, w_region *r, w_worker *worker, const gt_ps_order *o) {
  assert_false(worker->lent);
  assert_true(o->first >= 0 && o->first < W_BATCHES);
  assert_int_equal(o->params.n, W_PARAMS);
  worker->work = W_TRAINING;
  worker->batch = o->first;
  worker->ready = w->now + w_compute_time(w, r);
  r->wan_wait += o->wan_wait;
  for (size_t j = 0; !w->spec.no_data && j < W_PARAMS; j++)
    worker->grads[j] = o->params.data[j] - w_target(r->id, o->first, j);
}

void w_order(void *ctx, size_t index, const gt_ps_order *o) {
  w_region *r = ctx;
  world *w = r->world;
  w_worker *worker = &r->workers[index];
  assert_true(index < w->spec.workers[r->id]);
  worker->heard = w->now;
  if (o->kind == GT_PS_KEEPALIVE) {
    assert_true(worker->work == W_IDLE || worker->work == W_PUSHED);
    r->keepalives++;
    return;
  }
  assert_int_equal(worker->work, W_IDLE);
  r->orders++;
  if (o->kind == GT_PS_TRAIN) {
    w_train(w, r, worker, o);
    return;
  }
  assert_int_equal(o->kind, GT_PS_EVAL);
  worker->work = W_EVALUATING;
  worker->first = o->first;
  worker->count = o->count;
  if (o->params.n) worker->model = o->params.data;
  worker->ready = w->now + w_compute_time(w, r);
}

void w_taken(void *ctx, size_t index) {
  w_region *r = ctx;
  w_worker *worker = &r->workers[index];
  assert_true(worker->lent && worker->work == W_PUSHED);
  worker->lent = false;
  worker->work = W_IDLE;
  for (size_t j = 0; j < W_PARAMS; j++) worker->grads[j] = NAN; /* nobody may look at it any more */
  r->trained[worker->batch]++;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

gt_state w_deep_copy(const gt_state *lent) {
  gt_state copy = {.owns_data = true};
  for (size_t i = 0; i < lent->n; i++) {
    const gt_state_item *item = &lent->items[i];
    size_t size = item->count * gt_type_size(item->type);
    void *data = gt_alloc(size ? size : 1, 1);
    if (size && item->data) memcpy(data, item->data, size);
    gt_state_add(&copy, "", item->name, item->type, data, item->count);
  }
  return copy;
}

void w_forget_copy(w_region *r, size_t i) {
  gt_state_close(&r->copies[i].state);
  r->ncopies--;
  memmove(r->copies + i, r->copies + i + 1, (r->ncopies - i) * sizeof r->copies[0]);
}

void w_checkpoint(void *ctx, int64_t round) {
  w_region *r = ctx;
  world *w = r->world;
  gt_state lent = {0};
  assert_int_equal(r->writing, 0);
  assert_true(r->ncopies < W_COPIES);
  w_copy *c = &r->copies[r->ncopies++];
  gt_state_add(&lent, "model/", "params", GT_TYPE_F32, r->params, W_PARAMS);
  gt_state_add(&lent, "model/", "buffers", GT_TYPE_F32, r->buffers, W_BUFFERS);
  gt_ps_save(r->ps, w->now, &lent);
  *c = (w_copy){.round = round, .state = w_deep_copy(&lent)};
  memcpy(c->trained, r->trained, sizeof c->trained);
  for (size_t i = 0; i < w->n; i++) {
    c->applied[i] = w->links[i][r->id].applied;
    c->applied_value[i] = w->links[i][r->id].applied_value;
    c->posted_value[i] = w->links[r->id][i].posted_value;
  }
  gt_state_close(&lent);
  if (r->id == 0 && round == w->spec.unsound) gt_ps_round_unsound(r->ps);
  r->writing = round;
  r->rounds++;
  r->written_at = w->now + 1 + (gt_ns)(w->spec.write_s * 1e9 * gt_rng_uniform(&w->rng));
}

void w_whole(void *ctx, int64_t round) {
  w_region *r = ctx;
  r->wholes++;
  w_check(r->world, w_look(r->world, r->id).whole_sound == (round != r->world->spec.unsound));
  for (size_t i = 0; i < r->world->n; i++) { /* true in every region, whatever was told */
    const w_region *other = &r->world->regions[i];
    bool durable = false;
    for (size_t k = 0; k < other->ncopies; k++)
      durable |= other->copies[k].round == round && other->copies[k].durable;
    w_check(r->world, durable);
  }
  while (r->ncopies && r->copies[0].round < round - 1) w_forget_copy(r, 0);
}

void w_note(void *ctx, gt_ps_note note, double a, double b) {
  w_region *r = ctx;
  (void)a;
  if (note == GT_NOTE_EVAL) r->evals++;
  if (note == GT_NOTE_NONFINITE && b >= 0) r->nonfinite++;
  if (note == GT_NOTE_NONFINITE && b < 0) r->nonfinite_messages++;
}

void w_decided(void *ctx, const char *what, const char *choice, const char *why) {
  w_region *r = ctx;
  assert_true(what && choice && why);
  r->decisions++;
}
