/* Reachability: tests point to point that messages pass between rank 0 and every rank, and between
   the PS ranks, before any collective call could block for ever. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_REGIONS 64
/* lets the launcher forward the output before the job ends */
#define ABORT_WAIT ((gt_ns)300000000)

enum { TAG_CARD = 0x7201, TAG_ORDER, TAG_PING, TAG_REPORT, TAG_GO };

/* Sent from rank 0 to every rank: the status of the map, and the PS ranks. */
typedef struct {
  int32_t status, nps, ps[MAX_REGIONS];
  char text[GT_ERROR_TEXT_MAX];
} reach_order;

/* The other PS ranks from which a PS rank has not received a message. */
typedef struct {
  int32_t missing[MAX_REGIONS];
} reach_report;

typedef struct {
  const gt_region_plan *plan;
  size_t nregions;
  double limit_s;
  MPI_Comm comm;
  int rank, size;
  gt_reach_rank own, *ranks; /* ranks: on rank 0 */
  reach_order order;
  char text[GT_REACH_TEXT]; /* rank 0: failures, one per line */
  void (*blocked)(const char *reasons);
} reaching;

/* ---- helpers ---- */

static void read_kernel(char *id, size_t size) {
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
  snprintf(id, size, "-");
  if (f && fgets(id, (int)size, f)) id[strcspn(id, "\n")] = '\0';
  if (f) fclose(f);
}

static void say_blocked(reaching *r, int from, int to) {
  char a[160], b[160];
  size_t used = strlen(r->text);
  gt_reach_name(a, sizeof a, &r->ranks[from], from, r->plan, r->nregions);
  gt_reach_name(b, sizeof b, &r->ranks[to], to, r->plan, r->nregions);
  snprintf(r->text + used, sizeof r->text - used,
           "no message passes from %s to %s within %g s: the link is blocked, or a firewall drops "
           "MPI's ports\n",
           a, b, r->limit_s);
}

/* True if all requests complete before the deadline.  Completed requests become MPI_REQUEST_NULL in
   any case. */
static bool await(MPI_Request *requests, int n, double limit_s) {
  gt_backoff backoff = {0};
  gt_patience patience;
  int *indices = GT_NEW_ARRAY(int, (size_t)n + 1);
  bool all = false;
  gt_patience_start(&patience, limit_s);
  while (!all && !gt_patience_over(&patience)) {
    int done = 0;
    GT_MPI(MPI_Testsome(n, requests, &done, indices, MPI_STATUSES_IGNORE));
    all = done == MPI_UNDEFINED;
    if (done == 0) gt_backoff_sleep(&backoff, gt_patience_cap(&patience), GT_NEVER);
  }
  gt_free(indices);
  return all;
}

/* Rank 0 reports the failures and ends the job. */
static _Noreturn void end_blocked(const reaching *r) {
  if (r->blocked) r->blocked(r->text);
  fflush(stdout);
  gt_sleep(ABORT_WAIT);
  gt_panic(GT_ERR_NOGO, "NO-GO: %.*s", (int)strcspn(r->text, "\n"), r->text);
}

/* On other ranks: rank 0 ends the job; if it does not, this rank ends it. */
static _Noreturn void end_alone(const reaching *r) {
  gt_sleep(gt_from_seconds(r->limit_s));
  gt_panic(GT_ERR_NOGO,
           "NO-GO: rank %d on %s received nothing from rank 0: the link is blocked, or a firewall "
           "drops MPI's ports",
           r->rank, r->own.host);
}

/* ---- the map ---- */

/* Adds regions that would get fewer than 2 ranks; the plan's own text has only the numbers given to
   the launcher. */
static void say_small_regions(const reaching *r, const int *map) {
  char text[GT_ERROR_TEXT_MAX];
  snprintf(text, sizeof text, "%s", gt_error_text());
  for (size_t g = 0; g < r->nregions; g++) {
    int count = 0;
    for (int i = 0; i < r->size; i++) count += map[i] == (int)g;
    size_t used = strlen(text);
    if (count < 2)
      snprintf(text + used, sizeof text - used,
               "; region %s would get %d rank%s, and needs at least 2, a PS and a worker",
               r->plan[g].name, count, count == 1 ? "" : "s");
  }
  (void)GT_FAIL(GT_ERR_NOGO, "%s", text);
}

/* Builds the order for all ranks from their cards: the first rank of every region is its PS. */
static void make_order(reaching *r) {
  int *map = GT_NEW_ARRAY(int, (size_t)r->size);
  r->order = (reach_order){.status = GT_OK};
  for (int i = 0; i < r->size; i++) map[i] = r->ranks[i].region;
  if (r->plan && r->nregions <= MAX_REGIONS) {
    gt_status filled = gt_roles_fill(r->plan, r->nregions, map, r->size);
    /* its message takes precedence over that of the map */
    gt_status status = gt_roles_fits(r->plan, r->nregions, r->size);
    if (status == GT_OK) status = filled;
    if (status != GT_OK) {
      say_small_regions(r, map);
      r->order.status = GT_ERR_NOGO;
      snprintf(r->order.text, sizeof r->order.text, "%s", gt_error_text());
    }
    for (size_t g = 0; g < r->nregions; g++)
      for (int i = 0; i < r->size; i++)
        if (map[i] == (int)g) {
          r->order.ps[r->order.nps++] = i;
          break;
        }
    for (int i = 0; i < r->size; i++) r->ranks[i].region = map[i];
  }
  gt_free(map);
}

/* ---- rank 0 and the others ---- */

static void gather_cards(reaching *r) {
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, (size_t)r->size);
  gt_reach_rank *cards = GT_NEW_ARRAY(gt_reach_rank, (size_t)r->size);
  cards[0] = r->own;
  requests[0] = MPI_REQUEST_NULL;
  for (int i = 1; i < r->size; i++)
    GT_MPI(MPI_Irecv(&cards[i], (int)sizeof *cards, MPI_BYTE, i, TAG_CARD, r->comm, &requests[i]));
  bool all = await(requests, r->size, r->limit_s);
  for (int i = 0; i < r->size; i++)
    if (requests[i] == MPI_REQUEST_NULL) r->ranks[i] = cards[i];
  for (int i = 1; i < r->size; i++)
    if (requests[i] != MPI_REQUEST_NULL) say_blocked(r, i, 0);
  if (!all) end_blocked(r);
  gt_free(cards);
  gt_free(requests);
}

/* Sends a message from rank 0 to every rank; reports ranks that do not receive it in time. */
static void send_all(reaching *r, const void *data, size_t bytes, int tag) {
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, (size_t)r->size);
  requests[0] = MPI_REQUEST_NULL;
  for (int i = 1; i < r->size; i++)
    GT_MPI(MPI_Isend(data, (int)bytes, MPI_BYTE, i, tag, r->comm, &requests[i]));
  if (!await(requests, r->size, r->limit_s)) {
    for (int i = 1; i < r->size; i++)
      if (requests[i] != MPI_REQUEST_NULL) say_blocked(r, 0, i);
    end_blocked(r);
  }
  gt_free(requests);
}

static int own_place(const reaching *r) {
  for (int k = 0; k < r->order.nps; k++)
    if (r->order.ps[k] == r->rank) return k;
  return -1;
}

/* The PS ranks exchange a word; the report lists those that did not answer. */
static void ping_pairs(const reaching *r, reach_report *report) {
  int n = r->order.nps;
  int32_t word = r->rank, *words = GT_NEW_ARRAY(int32_t, (size_t)n + 1);
  MPI_Request *requests = GT_NEW_ARRAY(MPI_Request, 2 * (size_t)n + 2);
  for (int k = 0; k < n; k++) {
    requests[k] = requests[n + k] = MPI_REQUEST_NULL;
    if (r->order.ps[k] == r->rank) continue;
    GT_MPI(MPI_Irecv(&words[k], 1, MPI_INT32_T, r->order.ps[k], TAG_PING, r->comm, &requests[k]));
    GT_MPI(MPI_Isend(&word, 1, MPI_INT32_T, r->order.ps[k], TAG_PING, r->comm, &requests[n + k]));
  }
  bool all = await(requests, 2 * n, r->limit_s);
  for (int k = 0; k < n; k++) report->missing[k] = !all && requests[k] != MPI_REQUEST_NULL;
  if (!all) return; /* pending sends still read `word`, so it is not freed: the job ends */
  gt_free(words);
  gt_free(requests);
}

static void gather_reports(reaching *r, const reach_report *own) {
  reach_report *reports = GT_NEW_ARRAY(reach_report, MAX_REGIONS);
  MPI_Request requests[MAX_REGIONS];
  int n = r->order.nps;
  for (int k = 0; k < n; k++) {
    requests[k] = MPI_REQUEST_NULL;
    if (r->order.ps[k] == 0)
      reports[k] = *own;
    else
      GT_MPI(MPI_Irecv(&reports[k], (int)sizeof *reports, MPI_BYTE, r->order.ps[k], TAG_REPORT,
                       r->comm, &requests[k]));
  }
  if (!await(requests, n, 2 * r->limit_s))
    for (int k = 0; k < n; k++)
      if (requests[k] != MPI_REQUEST_NULL) say_blocked(r, r->order.ps[k], 0);
  for (int k = 0; k < n; k++)
    for (int j = 0; j < n; j++)
      if (reports[k].missing[j]) say_blocked(r, r->order.ps[j], r->order.ps[k]);
  if (r->text[0]) end_blocked(r);
  gt_free(reports);
}

static void lead(reaching *r) {
  reach_report *report = GT_NEW(reach_report);
  int32_t go = 1;
  gather_cards(r);
  make_order(r);
  send_all(r, &r->order, sizeof r->order, TAG_ORDER);
  if (own_place(r) >= 0) ping_pairs(r, report);
  gather_reports(r, report);
  send_all(r, &go, sizeof go, TAG_GO);
  gt_free(report);
}

static void follow(reaching *r) {
  reach_report *report = GT_NEW(reach_report);
  int32_t go = 0;
  MPI_Request requests[2];
  GT_MPI(MPI_Irecv(&r->order, (int)sizeof r->order, MPI_BYTE, 0, TAG_ORDER, r->comm, &requests[0]));
  GT_MPI(MPI_Isend(&r->own, (int)sizeof r->own, MPI_BYTE, 0, TAG_CARD, r->comm, &requests[1]));
  if (!await(requests, 2, 2 * r->limit_s)) end_alone(r);
  requests[1] = MPI_REQUEST_NULL;
  GT_MPI(MPI_Irecv(&go, (int)sizeof go, MPI_BYTE, 0, TAG_GO, r->comm, &requests[0]));
  if (own_place(r) >= 0) {
    ping_pairs(r, report);
    GT_MPI(MPI_Isend(report, (int)sizeof *report, MPI_BYTE, 0, TAG_REPORT, r->comm, &requests[1]));
  }
  if (!await(requests, 2, 4 * r->limit_s)) end_alone(r);
  gt_free(report);
}

gt_status gt_net_reach(gt_reach *out, gt_peers *world, const gt_region_plan *plan, size_t nregions,
                       double limit_s, void (*blocked)(const char *reasons)) {
  reaching *r = GT_NEW(reaching);
  *r = (reaching){.plan = plan,
                  .nregions = nregions,
                  .limit_s = limit_s,
                  .comm = gt_peers_mpi(world),
                  .rank = (int)world->rank,
                  .size = (int)world->size,
                  .blocked = blocked};
  int length;
  char host[MPI_MAX_PROCESSOR_NAME + 1] = "";
  GT_MPI(MPI_Get_processor_name(host, &length));
  snprintf(r->own.host, sizeof r->own.host, "%.63s", host);
  read_kernel(r->own.kernel, sizeof r->own.kernel);
  r->own.pid = (int32_t)getpid();
  int region = -1;
  gt_status opinion = plan ? gt_roles_own(plan, nregions, &region) : GT_OK;
  r->own.region = region;
  char why[GT_ERROR_TEXT_MAX] = "";
  if (opinion != GT_OK) snprintf(why, sizeof why, "%s", gt_error_text());
  if (r->rank == 0) r->ranks = GT_NEW_ARRAY(gt_reach_rank, (size_t)r->size);
  for (int i = 0; r->ranks && i < r->size; i++) r->ranks[i].region = -1;
  bool tested = false;
  if (!gt_reach_tcp(&r->own, r->ranks, world, plan, nregions, limit_s, r->text, &tested)) {
    if (r->rank == 0) end_blocked(r);
    end_alone(r);
  }
  if (r->rank == 0)
    lead(r);
  else
    follow(r);
  gt_status status = (gt_status)r->order.status;
  char sentence[GT_ERROR_TEXT_MAX];
  snprintf(sentence, sizeof sentence, "%s", r->order.text);
  *out = (gt_reach){.size = r->size, .ranks = r->ranks, .by_launcher = tested};
  gt_free(r);
  /* An unknown region name or a malformed list is reported instead of its consequences. */
  if (opinion != GT_OK) opinion = GT_FAIL(GT_ERR_NOGO, "%s", why);
  GT_TRY(gt_agree(world, opinion, 4 * limit_s));
  return status == GT_OK ? GT_OK : GT_FAIL(GT_ERR_NOGO, "%s", sentence);
}

void gt_reach_close(gt_reach *reach) {
  gt_free(reach->ranks);
  reach->ranks = NULL;
}
