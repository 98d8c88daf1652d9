/* The start of a run between the regions: HELLO, and the round to resume from.  A region's files
   are checked newest first, each is read once, and the regions agree on the first round that is
   whole and sound in all of them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* ---- files of the regions -------------------------------------------------------------------- */

void gt_server_rounds(gt_server *s, gt_hello *own) {
  own->nrounds =
      (int64_t)gt_ckpt_rounds(s->run->run_dir, s->run->region, own->rounds, GT_MAX_ROUNDS);
  own->newest_round = own->nrounds > 0 ? own->rounds[own->nrounds - 1] : 0;
}

static bool holds(const gt_hello *h, int64_t round) {
  for (int64_t i = 0; i < h->nrounds; i++)
    if (h->rounds[i] == round) return true;
  return false;
}

/* Returns the newest round below `below` for which every region has a file; 0: none. */
static int64_t common_round(const gt_server *s, int64_t below) {
  const gt_hello *first = &s->hellos[0];
  for (int64_t i = first->nrounds - 1; i >= 0; i--) {
    bool everywhere = first->rounds[i] < below;
    for (size_t p = 1; p < s->run->job->nregions && everywhere; p++)
      everywhere = holds(&s->hellos[p], first->rounds[i]);
    if (everywhere) return first->rounds[i];
  }
  return 0;
}

/* Gathers one number from every region, in region order; collective over the PS ranks. */
static void gather(const gt_server *s, int64_t own, int64_t *all, const char *what) {
  gt_peers_gather(s->run->roles.ps, &own, sizeof own, all, what, s->run->start_limit_s);
}

/* Returns the worst verdict of any region on its file of the round; collective over the PS
   ranks. */
static gt_round_verdict judge_everywhere(gt_server *s, int64_t round) {
  int64_t all[GT_MAX_REGIONS], worst = GT_ROUND_SOUND;
  gt_round_verdict own = gt_setup_read_round(s->run, round);
  if (own != GT_ROUND_SOUND) gt_log(GT_LOG_WARN, "%s", s->run->kept.why);
  gather(s, (int64_t)own, all, "what the other regions' files of a round are worth");
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    gt_hello *h = &s->hellos[p];
    if (all[p] > worst) worst = all[p];
    if (all[p] == GT_ROUND_DAMAGED && h->damaged < round) h->damaged = round;
    if (all[p] == GT_ROUND_NOT_FINITE && s->nonfinite_round[p] < round)
      s->nonfinite_round[p] = round;
  }
  return (gt_round_verdict)worst;
}

/* If no round is common to all, reads the unread files, which can be damaged.  Collective over the
   PS ranks. */
static void judge_the_rest(gt_server *s) {
  int64_t all[GT_MAX_REGIONS], damaged = 0;
  const gt_hello *own = &s->hellos[s->run->roles.region_id];
  for (int64_t i = own->nrounds - 1; i >= 0; i--) {
    if (gt_setup_read_round(s->run, own->rounds[i]) != GT_ROUND_DAMAGED) continue;
    gt_log(GT_LOG_WARN, "%s", s->run->kept.why);
    if (damaged == 0) damaged = own->rounds[i];
  }
  gather(s, damaged, all, "which files of other regions are damaged");
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (all[p] > s->hellos[p].damaged) s->hellos[p].damaged = all[p];
}

/* ---- a requested round ----------------------------------------------------------------------- */

static gt_status list_others(gt_server *s, int64_t asked) {
  char list[512] = "";
  size_t used = 0;
  for (int64_t round = common_round(s, INT64_MAX); round > 0; round = common_round(s, round)) {
    if (round == asked || judge_everywhere(s, round) > GT_ROUND_DOUBTFUL) continue;
    if (used + 24 < sizeof list)
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%lld", used ? ", " : "",
                               (long long)round);
  }
  return GT_FAIL(
      GT_ERR_CKPT,
      "--resume-round %lld: %s holds no such round that is whole and finite in every region; %s%s",
      (long long)asked, s->run->run_dir, used ? "those that are: " : "there is none", list);
}

/* Checks that every PS was given the same round. */
static gt_status same_asked(const gt_server *s, int64_t asked) {
  int64_t all[GT_MAX_REGIONS];
  gather(s, asked, all, "the rounds that the other regions resume from");
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (all[p] != all[0])
      return GT_FAIL(GT_ERR_JOB,
                     "region %s was started with --resume-round %lld, region %s with %lld (0: "
                     "without); all ranks need the same",
                     s->run->job->regions[p].name, (long long)all[p], s->run->job->regions[0].name,
                     (long long)all[0]);
  return GT_OK;
}

static gt_status settle_asked(gt_server *s, int64_t asked, int64_t *round) {
  bool there = true;
  for (size_t p = 0; p < s->run->job->nregions && there; p++) there = holds(&s->hellos[p], asked);
  if (!there || judge_everywhere(s, asked) > GT_ROUND_DOUBTFUL) return list_others(s, asked);
  *round = asked;
  return GT_OK;
}

/* ---- the newest round ------------------------------------------------------------------------ */

/* Decides whether a run with files but no round to resume from can start again.  It can if it ended
   in its first round: then a region can have one whole file; none, if members change: a region
   continues from any file.  Anything else is a loss of data, which a start from the beginning would
   hide. */
static gt_status nothing_common(const gt_server *s) {
  size_t n = s->run->job->nregions;
  for (size_t p = 0; p < n; p++) {
    const gt_hello *h = &s->hellos[p];
    char path[1300];
    const bool few = h->nrounds < (gt_server_members_change(s) ? 1 : 2);
    if (h->damaged == 0 && s->nonfinite_round[p] == 0 && few) continue;
    int64_t named = h->damaged              ? h->damaged
                    : s->nonfinite_round[p] ? s->nonfinite_round[p]
                                            : h->rounds[h->nrounds - 1];
    gt_ckpt_path(path, sizeof path, s->run->run_dir, named, s->run->job->regions[p].name);
    if (h->damaged)
      return GT_FAIL(GT_ERR_CKPT,
                     "no round is whole in every region, and %s is damaged; restore it or begin in "
                     "another --run-dir",
                     path);
    if (s->nonfinite_round[p])
      return GT_FAIL(GT_ERR_CKPT,
                     "no round is whole and finite in every region: %s holds non-finite "
                     "numbers; begin in another --run-dir",
                     path);
    return GT_FAIL(GT_ERR_CKPT,
                   "no round is whole in every region, although region %s has %s; restore the "
                   "files of the other regions or begin in another --run-dir",
                   s->run->job->regions[p].name, path);
  }
  return GT_OK;
}

/* A doubtful round (finite, but without finite gradients before it) is used only if there is no
   sound one. */
static gt_status settle_newest(gt_server *s, int64_t *round) {
  int64_t doubtful = 0;
  for (int64_t at = common_round(s, INT64_MAX); at > 0; at = common_round(s, at)) {
    gt_round_verdict worst = judge_everywhere(s, at);
    if (worst == GT_ROUND_DOUBTFUL && doubtful == 0) doubtful = at;
    if (worst != GT_ROUND_SOUND) continue;
    *round = at;
    return GT_OK;
  }
  *round = doubtful;
  if (doubtful > 0) return GT_OK;
  judge_the_rest(s);
  return nothing_common(s);
}

/* Finds the newest sound round of this region alone, or the one of --resume-round. */
static gt_status own_round(const gt_server *s, const gt_hello *own, int64_t *round) {
  const int64_t asked = s->run->options->resume_round;
  *round = 0;
  for (int64_t i = own->nrounds - 1; i >= 0 && *round == 0; i--)
    if ((asked == 0 || own->rounds[i] == asked) &&
        gt_setup_read_round(s->run, own->rounds[i]) <= GT_ROUND_DOUBTFUL)
      *round = own->rounds[i];
  if (asked == 0 || *round == asked) return GT_OK;
  return GT_FAIL(GT_ERR_CKPT, "--resume-round %lld: %s holds no such round that is finite",
                 (long long)asked, s->run->run_dir);
}

/* ---- the newest round of members that change ------------------------------------------------- */

/* What a region has: for each of its rounds its verdict, and its epoch with its members, as bits;
   unfit: only the region itself can return with it (gt_ps_view). */
typedef struct {
  int64_t verdict[GT_MAX_ROUNDS], epoch[GT_MAX_ROUNDS];
  uint64_t members[GT_MAX_ROUNDS];
  bool unfit[GT_MAX_ROUNDS];
} kept_rounds;
_Static_assert(GT_MAX_REGIONS <= 64, "members are the bits of a word");

/* The newest state of a region from which a run without a whole round can continue; the higher
   `rank` is of the later epoch, then of more steps.  0: none. */
typedef struct {
  int64_t round, rank;
} last_state;

/* The number of an epoch has 16 bits. */
#define STEP_BITS 46

static int64_t rank_of(int64_t epoch, int64_t step) {
  return (epoch << STEP_BITS | step) + 1;
}

static int64_t epoch_of(int64_t rank) {
  return rank > 0 ? (rank - 1) >> STEP_BITS : 0;
}

static void read_kept(const gt_server *s, kept_rounds *kept, last_state *last) {
  const gt_hello *own = &s->hellos[s->run->roles.region_id];
  const size_t n = s->run->job->nregions;
  for (int64_t i = 0; i < own->nrounds; i++) {
    const gt_state_direction from = {.from = &s->run->kept.state};
    bool members[GT_MAX_REGIONS] = {0};
    int64_t unfit = 0;
    kept->verdict[i] = gt_setup_read_round(s->run, own->rounds[i]);
    if (kept->verdict[i] > GT_ROUND_DOUBTFUL) continue;
    if (gt_state_get(from.from, "ps/epoch/", "number", GT_TYPE_I64, &kept->epoch[i], 1) != GT_OK ||
        gt_state_get(from.from, "ps/epoch/", "unfit", GT_TYPE_I64, &unfit, 1) != GT_OK ||
        gt_state_flags(from, "ps/epoch/", "members", members, n) != GT_OK)
      kept->verdict[i] = GT_ROUND_DAMAGED;
    kept->unfit[i] = unfit != 0;
    if (unfit != GT_PS_UNFIT_ALWAYS && kept->verdict[i] <= GT_ROUND_DOUBTFUL)
      *last = (last_state){own->rounds[i], rank_of(kept->epoch[i], s->run->kept.info.step)};
    for (size_t r = 0; r < n; r++) kept->members[i] |= (uint64_t)members[r] << r;
  }
}

/* True if every member of the epoch in which the region took its i-th round has this round, of the
   same epoch. */
static bool is_whole(const gt_server *s, const kept_rounds *all, size_t region, int64_t i) {
  const uint64_t members = all[region].members[i];
  if (all[region].verdict[i] > GT_ROUND_DOUBTFUL || all[region].unfit[i]) return false;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    const gt_hello *h = &s->hellos[p];
    int64_t k = 0;
    if ((members >> p & 1) == 0) continue;
    while (k < h->nrounds && h->rounds[k] != s->hellos[region].rounds[i]) k++;
    if (k == h->nrounds || all[p].verdict[k] > GT_ROUND_DOUBTFUL || all[p].unfit[k] ||
        all[p].epoch[k] != all[region].epoch[i])
      return false;
  }
  return true;
}

/* No round is whole: each region has stopped without the others, or the run ended in its first
   round.  Region `best` continues alone, and the others return to it; nregions: there is none. */
static gt_status settle_last(gt_server *s, const last_state *own, size_t best, int64_t *round) {
  const size_t self = s->run->roles.region_id;
  judge_the_rest(s);
  if (best == s->run->job->nregions) return nothing_common(s);
  gt_log_job(
      GT_LOG_WARN,
      "no round of the newest epoch is whole: the run continues from the newest checkpoint of "
      "region %s",
      s->run->job->regions[best].name);
  s->returns = best != self;
  s->partial = true;
  *round = own->round;
  return s->returns ? own_round(s, &s->hellos[self], round) : GT_OK;
}

/* Returns the region that is furthest if its epoch is later than this one; nregions: none.
   Collective over the PS ranks. */
static size_t furthest_after(const gt_server *s, const last_state *own, int64_t epoch) {
  const size_t n = s->run->job->nregions;
  int64_t ranks[GT_MAX_REGIONS];
  size_t best = 0;
  gather(s, own->rank, ranks, "how far the other regions are");
  for (size_t p = 1; p < n; p++)
    if (ranks[p] > ranks[best]) best = p;
  return ranks[best] > 0 && epoch_of(ranks[best]) > epoch ? best : n;
}

/* Finds the newest round that is whole among the members of its epoch; a region that was none
   returns with its own newest round.  A region of a later epoch could not return to such a round,
   so without a whole round of the newest epoch none is used. */
static gt_status settle_members(gt_server *s, int64_t *round) {
  const size_t n = s->run->job->nregions, self = s->run->roles.region_id;
  kept_rounds own = {0}, *all = GT_NEW_ARRAY(kept_rounds, n);
  uint64_t members = 0;
  int64_t epoch = -1; /* of the round */
  last_state last = {0};
  read_kept(s, &own, &last);
  gt_peers_gather(s->run->roles.ps, &own, sizeof own, all, "the rounds of the other regions",
                  s->run->start_limit_s);
  for (size_t p = 0; p < n; p++)
    for (int64_t i = 0; i < s->hellos[p].nrounds; i++)
      if (s->hellos[p].rounds[i] > *round && is_whole(s, all, p, i)) {
        *round = s->hellos[p].rounds[i];
        members = all[p].members[i];
        epoch = all[p].epoch[i];
      }
  gt_free(all);
  const size_t best = furthest_after(s, &last, epoch);
  if (*round == 0 || best < n) return settle_last(s, &last, best, round);
  s->returns = (members >> self & 1) == 0;
  for (size_t p = 0; p < n; p++) s->partial |= (members >> p & 1) == 0;
  return s->returns ? own_round(s, &s->hellos[self], round) : GT_OK;
}

/* Finds the newest of the rounds listed by all regions that is whole and sound in every region, or
   the round given by --resume-round; 0: start from the beginning.  Collective over the PS ranks.
   GT_ERR_CKPT: files exist, but none to resume from; GT_ERR_JOB: ranks were given different
   rounds. */
static gt_status settle_round(gt_server *s, int64_t *round) {
  bool any = false;
  for (size_t p = 0; p < s->run->job->nregions; p++) any = any || s->hellos[p].nrounds > 0;
  *round = 0;
  if (!any) return GT_OK;
  const int64_t asked = s->run->options->resume_round;
  GT_TRY(same_asked(s, asked));
  if (asked > 0) return settle_asked(s, asked, round);
  return gt_server_members_change(s) ? settle_members(s, round) : settle_newest(s, round);
}

/* ---- hello ----------------------------------------------------------------------------------- */

/* The handshake of the PS ranks: compares the fields that must agree, by name, and finds the round
   to resume from by messages alone. */

_Static_assert(sizeof(gt_hello) == GT_HELLO_BYTES, "a simulation counts it");

static void check_greeting(const gt_server *s, size_t peer) {
  gt_hello *h = &s->hellos[peer];
  /* refused later; its other fields can have a different layout */
  if (h->protocol != GT_PROTOCOL_VERSION) h->nrounds = 0;
  if (h->nrounds < 0 || h->nrounds > GT_MAX_ROUNDS)
    gt_gateway_refuse(s->gateway, peer, "HELLO names %lld rounds", (long long)h->nrounds);
  char *const texts[] = {h->job, h->traces, h->data, h->model, h->weights};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) texts[i][GT_SHA256_HEX - 1] = '\0';
  h->run_id[GT_RUN_ID - 1] = '\0';
  h->error[sizeof h->error - 1] = '\0';
}

void gt_server_hello_message(gt_server *s, size_t peer, const gt_frame_header *head,
                             const void *payload) {
  if (head->message_bytes != sizeof(gt_hello))
    gt_panic(GT_ERR_JOB, "region %s runs another build: its greeting has %llu bytes, expected %zu",
             s->run->job->regions[peer].name, (unsigned long long)head->message_bytes,
             sizeof(gt_hello));
  if (s->hellos[peer].protocol == 0) s->nhellos++;
  memcpy(&s->hellos[peer], payload, sizeof *s->hellos);
  check_greeting(s, peer);
}

static gt_status differs(const gt_server *s, size_t peer, const char *what, const char *there,
                         const char *here) {
  return GT_FAIL(
      GT_ERR_JOB,
      "region %s has another %s than region %s: %s there, %s here; all regions need the same",
      s->run->job->regions[peer].name, what, s->run->region, there, here);
}

/* True for statuses with which a region can refuse to begin. */
static bool is_refusal(uint32_t status) {
  return status == GT_ERR_JOB || status == GT_ERR_DATA || status == GT_ERR_CKPT ||
         status == GT_ERR_FAULT;
}

static const char *name_of(const gt_server *s, size_t region) {
  return s->run->job->regions[region].name;
}

/* Checks that two regions continue the same run, or both begin.  A region without which the run
   began can come for the first time when the others resume. */
static gt_status same_run(const gt_server *s, size_t a, size_t b) {
  const gt_hello *first = &s->hellos[a], *second = &s->hellos[b];
  const bool can_be_late = b != 0 && s->run->job->sync.min_regions > 0;
  if (first->nrounds == 0 && second->nrounds == 0) return GT_OK;
  if (first->nrounds == 0) return same_run(s, b, a);
  if (second->nrounds == 0 && second->fresh && !can_be_late)
    return GT_FAIL(GT_ERR_CKPT,
                   "region %s resumes run %s, and region %s begins %s%s; start all regions with "
                   "--resume from the --run-dir of the same run, or all with a new --run-dir",
                   name_of(s, a), first->run_id, name_of(s, b),
                   second->run_id[0] ? "run " : "a new run", second->run_id);
  if (second->nrounds == 0 || !first->run_id[0] || !second->run_id[0] ||
      strcmp(first->run_id, second->run_id) == 0)
    return GT_OK;
  return GT_FAIL(GT_ERR_CKPT,
                 "region %s has checkpoints of run %s, and region %s of run %s; resume every "
                 "region from the --run-dir of the same run",
                 name_of(s, a), first->run_id, name_of(s, b), second->run_id);
}

static gt_status compare(const gt_server *s, size_t peer, const gt_hello *own) {
  const gt_hello *h = &s->hellos[peer];
  if (h->protocol != GT_PROTOCOL_VERSION)
    return GT_FAIL(GT_ERR_JOB,
                   "region %s speaks protocol %u, this is protocol %d; all regions need the same "
                   "version of geotrain",
                   s->run->job->regions[peer].name, h->protocol, GT_PROTOCOL_VERSION);
  if (h->status != GT_OK && !is_refusal(h->status))
    return GT_FAIL(GT_ERR_LOST, "region %s: HELLO has unknown status %u",
                   s->run->job->regions[peer].name, h->status);
  if (h->status != GT_OK)
    return GT_FAIL((gt_status)h->status, "region %s: %.470s", s->run->job->regions[peer].name,
                   h->error);
  if (strcmp(h->job, own->job) != 0) return differs(s, peer, "job", h->job, own->job);
  if (strcmp(h->traces, own->traces) != 0)
    return differs(s, peer, "set of bandwidth traces (wan.links[].trace)", h->traces, own->traces);
  if (strcmp(h->data, own->data) != 0) {
    (void)differs(s, peer, "data schema (image size, classes, type or normalisation)", h->data,
                  own->data);
    return GT_FAIL(GT_ERR_DATA, "%s", gt_error_text());
  }
  if (strcmp(h->model, own->model) != 0) return differs(s, peer, "model", h->model, own->model);
  return same_run(s, peer, s->run->roles.region_id);
}

/* A run that can begin without regions weighs them by the numbers of samples in the job. */
static gt_status as_many(const gt_server *s, size_t region, int64_t samples) {
  const gt_job *job = s->run->job;
  const int64_t needed = job->regions[region].samples;
  if (job->sync.min_regions == 0 || !gt_job_trains(job, region) || samples == needed) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "region %s has %lld training samples, and regions.%zu.samples is %lld; expected "
                 "as many, because sync.min_regions is given",
                 name_of(s, region), (long long)samples, region, (long long)needed);
}

static bool has_final_model(const gt_run *run) {
  char path[1300];
  return access(gt_ckpt_final_model_path(path, sizeof path, run->run_dir, NULL), F_OK) == 0 ||
         access(gt_ckpt_final_model_path(path, sizeof path, run->run_dir, run->region), F_OK) == 0;
}

/* Checks, for a start without a round, what only this region knows: a round was whole everywhere,
   or a final model would be replaced, or the initial weights could not be read. */
static gt_status may_begin(const gt_server *s, const gt_hello *own) {
  const gt_run *run = s->run;
  char path[1300];
  if (own->nrounds > 0 && gt_ckpt_was_whole(run->run_dir, run->region))
    return GT_FAIL(
        GT_ERR_CKPT,
        "%s was whole in every region, and another region has lost it; restore its files or begin "
        "in another --run-dir",
        gt_ckpt_path(path, sizeof path, run->run_dir, own->rounds[own->nrounds - 1], run->region));
  if (gt_ckpt_was_whole(run->run_dir, run->region))
    return GT_FAIL(GT_ERR_CKPT,
                   "%s/ckpt: a checkpoint was whole in every region, and all its rounds are lost; "
                   "restore them or begin in another --run-dir",
                   run->run_dir);
  if (run->options->resume != GT_RESUME_NO && has_final_model(run))
    return GT_FAIL(GT_ERR_CKPT,
                   "%s holds a final model and no checkpoint to resume from; restore %s/ckpt or "
                   "begin in another --run-dir",
                   run->run_dir, run->run_dir);
  if (run->init_missing)
    return GT_FAIL(GT_ERR_CKPT,
                   "train.init %s cannot be read, and there is no checkpoint to resume from",
                   run->job->train.init);
  return GT_OK;
}

static gt_status same_weights(const gt_server *s, const gt_hello *own) {
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (strcmp(s->hellos[p].weights, own->weights) != 0)
      return differs(s, p, "set of initial weights (train.init)", s->hellos[p].weights,
                     own->weights);
  return GT_OK;
}

/* Returns the run of the regions with files; if there are none, the one that the lead has made. */
static const char *run_of(const gt_server *s) {
  for (size_t p = 0; p < s->run->job->nregions; p++)
    if (s->hellos[p].nrounds > 0 && s->hellos[p].run_id[0]) return s->hellos[p].run_id;
  return s->hellos[0].run_id;
}

/* Exchanges the greetings by messages of the gateway. */
static void exchange(gt_server *s, const gt_hello *own) {
  size_t n = s->run->job->nregions, self = s->run->roles.region_id;
  gt_ns deadline = gt_now() + gt_from_seconds(s->run->start_limit_s);
  gt_backoff backoff = {0};
  gt_frame_header head = {.kind = GT_MSG_HELLO};
  s->hellos[self] = *own;
  for (size_t p = 0; p < n; p++)
    if (p != self) gt_gateway_send(s->gateway, p, &head, own, sizeof *own, 0, gt_now());
  gt_backoff_reset(&backoff);
  /* This region's own greetings must also have been sent: nothing polls the gateway until all ranks
     have agreed to start. */
  for (bool large = true;
       s->nhellos + 1 < n || large || gt_gateway_next(s->gateway, &large) != GT_NEVER;) {
    gt_ns now = gt_now();
    if (gt_gateway_poll(s->gateway, now)) {
      gt_backoff_reset(&backoff);
      continue;
    }
    if (now > deadline) {
      size_t missing = 0;
      while (missing < n && (missing == self || s->hellos[missing].protocol != 0)) missing++;
      if (missing == n)
        gt_panic(GT_ERR_LOST, "waited %.0f s for the greetings of region %s to leave",
                 s->run->start_limit_s, s->run->region);
      gt_panic(GT_ERR_LOST, "waited %.0f s for the greeting of region %s", s->run->start_limit_s,
               s->run->job->regions[missing].name);
    }
    gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, gt_gateway_next(s->gateway, &large));
  }
}

/* Exchanges them in the group, where a region that returns gets those from the start of the run,
   its own included. */
static void exchange_in_group(gt_server *s, const gt_hello *own) {
  gt_peers_gather(s->run->roles.ps, own, sizeof *own, s->hellos, "the greetings of other regions",
                  s->run->start_limit_s);
  gt_failpoint("hello.greeted");
  /* A region that starts again meanwhile, the lead with another run id, has another greeting than
     some others have of it: all take those that the second region has. */
  gt_peers_share(s->run->roles.ps, gt_setup_second(s->run), s->hellos,
                 s->run->job->nregions * sizeof *s->hellos,
                 "the greetings as the second region has them", s->run->start_limit_s);
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    check_greeting(s, p);
    if (gt_setup_is_late(s->run, p))
      s->hellos[p].samples = gt_job_trains(s->run->job, p) ? s->run->job->regions[p].samples : 0;
  }
  s->returns = s->partial = gt_endpoint_returns(s->run->endpoint);
}

/* ---- a return -------------------------------------------------------------------------------- */

/* Checks what this region is now against what it was when the run began. */
static gt_status same_region(const gt_server *s, const gt_hello *own) {
  const gt_hello *then = &s->hellos[s->run->roles.region_id];
  if (own->samples != then->samples)
    return GT_FAIL(GT_ERR_DATA,
                   "region %s has %lld training samples, and had %lld when the run began; restore "
                   "its data",
                   s->run->region, (long long)own->samples, (long long)then->samples);
  if (own->nrounds > 0 && own->run_id[0] && strcmp(own->run_id, run_of(s)) != 0)
    return GT_FAIL(GT_ERR_CKPT,
                   "%s has checkpoints of run %s, and the other regions continue run %s; use the "
                   "--run-dir of that run",
                   s->run->run_dir, own->run_id, run_of(s));
  return GT_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

gt_status gt_server_hello(gt_server *s, const gt_hello *own, int64_t *round, int64_t *newest) {
  const size_t n = s->run->job->nregions, self = s->run->roles.region_id;
  if (gt_server_members_change(s))
    exchange_in_group(s, own);
  else
    exchange(s, own);
  gt_status status =
      own->status == GT_OK ? GT_OK : GT_FAIL((gt_status)own->status, "%s", own->error);
  for (size_t p = 0; p < n && status == GT_OK; p++)
    if (p != self || s->returns) status = compare(s, p, own);
  for (size_t p = 0; p < n && status == GT_OK; p++)
    status = as_many(s, p, p == self ? own->samples : s->hellos[p].samples);
  *round = 0;
  if (status == GT_OK && s->returns) status = same_region(s, own);
  if (status == GT_OK) status = s->returns ? own_round(s, own, round) : settle_round(s, round);
  if (*round == 0 && status == GT_OK && !s->returns) status = may_begin(s, own);
  if (*round == 0 && status == GT_OK) status = same_weights(s, own);
  memcpy(s->run_id, run_of(s), sizeof s->run_id);
  *newest = 0;
  for (size_t p = 0; p < n; p++)
    if (s->hellos[p].newest_round > *newest) *newest = s->hellos[p].newest_round;
  return status;
}
