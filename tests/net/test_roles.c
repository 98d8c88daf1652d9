/* ranks: 1 3 5; processors: 1 */
/* Roles: blocks, environment and hosts; each error gives the same sentence on all ranks. */
#include "geotrain/net.h"
#include "ranks.h"

static const gt_region_plan five[] = {{"shanghai", 3, NULL, 0}, {"chongqing", 2, NULL, 0}};

static void check_refused(const gt_region_plan *plan, size_t n, const char *sentence) {
  gt_roles roles;
  must_say(gt_roles_create(&roles, world, plan, n, LIMIT_S), GT_ERR_JOB, sentence);
  gt_roles_close(&roles, LIMIT_S);
}

static void too_few_ranks(void) {
  unsetenv("GEOTRAIN_REGION");
  if (size == 5) return;
  check_refused(
      five, 2,
      size == 1
          ? "1 rank was started, but the job needs 5 (shanghai 3, chongqing 2): mpirun -n 5"
          : "3 ranks were started, but the job needs 5 (shanghai 3, chongqing 2): mpirun -n 5");
}

static void worlds_of_one(void) {
  if (size != 1) return;
  /* as set by a launcher whose PMIx version differs from this MPI's */
  setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
  check_refused(five, 2,
                "5 tasks were started, but each is a world of 1 rank; the job needs one of 5 "
                "ranks (shanghai 3, chongqing 2): use srun --mpi=pmix, or mpirun -n 5");
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
}

static void a_region_of_none(void) {
  const gt_region_plan plan[] = {{"a", 0, NULL, 0}, {"b", 2, NULL, 0}};
  check_refused(plan, 2, "region a has 0 ranks; expected 1 or more");
}

/* Checks a rank's own roles: sizes, orders, and that PS ranks are ordered by region id in their
   group. */
static void check_roles(const gt_roles *r, int region, int region_rank, int region_size) {
  assert_int_equal(r->region_id, region);
  assert_int_equal(r->region_rank, region_rank);
  assert_int_equal(r->region_size, region_size);
  assert_int_equal(r->nregions, 2);
  assert_int_equal(r->is_ps, region_rank == 0);
  assert_int_equal(r->is_lead, region_rank == 0 && region == 0);
  assert_int_equal(r->ps != NULL, r->is_ps);
  if (!r->is_ps) return;
  assert_int_equal(r->ps->rank, region);
  assert_int_equal(r->ps->size, 2);
}

/* Its rank is a PS without workers. */
static void a_region_of_one(void) {
  if (size != 3) return;
  const gt_region_plan plan[] = {{"a", 2, NULL, 0}, {"hub", 1, NULL, 0}};
  gt_roles roles;
  must(gt_roles_create(&roles, world, plan, 2, LIMIT_S));
  check_roles(&roles, rank < 2 ? 0 : 1, rank % 2, rank < 2 ? 2 : 1);
  gt_roles_close(&roles, LIMIT_S);
}

static void blocks(void) {
  if (size != 5) return;
  gt_roles roles;
  must(gt_roles_create(&roles, world, five, 2, LIMIT_S));
  check_roles(&roles, rank < 3 ? 0 : 1, rank < 3 ? rank : rank - 3, rank < 3 ? 3 : 2);
  char *map = gt_roles_map(&roles, five, NULL),
       *of_first = gt_roles_map(&roles, five, (const bool[]){false, true});
  assert_int_equal(map != NULL, rank == 0);
  if (map) {
    char host[MPI_MAX_PROCESSOR_NAME], expected[2 * MPI_MAX_PROCESSOR_NAME + 128];
    int length;
    MPI_Get_processor_name(host, &length);
    snprintf(expected, sizeof expected,
             "region shanghai: ranks 0 (PS), 1, 2 on %s\nregion chongqing: ranks 3 (PS), 4 on %s\n",
             host, host);
    assert_string_equal(map, expected);
    snprintf(expected, sizeof expected,
             "region shanghai: ranks 0 (PS), 1, 2 on %s\nregion chongqing: it is not there yet\n",
             host);
    assert_string_equal(of_first, expected);
    gt_free(of_first);
    gt_free(map);
  }
  gt_roles_close(&roles, LIMIT_S);
}

static void environment(void) {
  if (size != 5) return;
  /* Interleaved: 0 and 2 are chongqing, so rank 0 is the PS of region 1. */
  bool second = rank == 0 || rank == 2;
  setenv("GEOTRAIN_REGION", second ? "chongqing" : "shanghai", 1);
  gt_roles roles;
  must(gt_roles_create(&roles, world, five, 2, LIMIT_S));
  static const int ranks[] = {0, 0, 1, 1, 2};
  check_roles(&roles, second ? 1 : 0, ranks[rank], second ? 2 : 3);
  gt_roles_close(&roles, LIMIT_S);

  if (rank == 4) setenv("GEOTRAIN_REGION", "chongqing", 1);
  check_refused(five, 2, "region shanghai got 2 ranks, but the job says 3");
  if (rank == 4) setenv("GEOTRAIN_REGION", "shangai", 1);
  check_refused(
      five, 2,
      "GEOTRAIN_REGION is \"shangai\", which is no region of the job; did you mean \"shanghai\"?");
  if (rank == 3) unsetenv("GEOTRAIN_REGION");
  if (rank == 4) setenv("GEOTRAIN_REGION", "shanghai", 1);
  check_refused(five, 2,
                "rank 0 has GEOTRAIN_REGION in its environment, but rank 3 has not; all ranks need "
                "it, or none");
  unsetenv("GEOTRAIN_REGION");
}

/* One host, which is only in one of the two lists, so all five ranks belong to one region. */
static void hosts(void) {
  if (size != 5) return;
  char host[MPI_MAX_PROCESSOR_NAME], sentence[MPI_MAX_PROCESSOR_NAME + 128];
  int length;
  MPI_Get_processor_name(host, &length);
  const char *here[] = {host}, *there[] = {"elsewhere[01-16]"}, *broken[] = {"node[1"};
  gt_region_plan plan[] = {{"a", 3, there, 1}, {"b", 2, here, 1}};
  check_refused(plan, 2, "region a got 0 ranks, but the job says 3");
  /* Slurm's name of the host counts, too */
  setenv("SLURMD_NODENAME", rank < 3 ? "elsewhere07" : "there2", 1);
  plan[1].hosts = (const char *const[]){"there[1-2]"};
  gt_roles roles;
  must(gt_roles_create(&roles, world, plan, 2, LIMIT_S));
  assert_int_equal(roles.region_id, rank < 3 ? 0 : 1);
  gt_roles_close(&roles, LIMIT_S);
  unsetenv("SLURMD_NODENAME");
  plan[1].hosts = here;
  plan[0].hosts = here;
  snprintf(sentence, sizeof sentence,
           "regions[].hosts: host %s is in the lists of a and b; GEOTRAIN_REGION must say which "
           "region its ranks "
           "belong to",
           host);
  check_refused(plan, 2, sentence);
  plan[0].hosts = plan[1].hosts = there;
  snprintf(sentence, sizeof sentence,
           "regions[].hosts: host %s is in no region's list of hosts; every host must be in one",
           host);
  check_refused(plan, 2, sentence);
  plan[1].hosts = broken;
  check_refused(plan, 2,
                "regions[].hosts has \"node[1\": a '[' has no ']'; expected names or a form like "
                "node[01-16,18]");
}

RANK_TESTS(too_few_ranks, worlds_of_one, a_region_of_none, a_region_of_one, blocks, environment,
           hosts)
