/* The topologies hub and tree: the neighbors of a region.  A hub is a tree in which all other
   regions are children of the root. */
#include "tree.h"

/* Returns the child of this region whose branch contains `region`, or this region if none does. */
static size_t branch_of(const gt_exchange *x, size_t region) {
  const size_t *parent = x->spec.next;
  size_t steps = 0;
  for (size_t at = region; steps < x->spec.nregions; at = parent[at], steps++) {
    if (parent[at] == x->spec.self && at != x->spec.self) return at;
    if (parent[at] == at) return x->spec.self;
  }
  gt_bug("region %zu does not come to the root of the tree", region);
}

static void add_neighbours(gt_exchange *x) {
  gt_tree *tree = &x->tree;
  const size_t self = x->spec.self;
  tree->parent = x->spec.next[self];
  for (size_t r = 0; r < x->spec.nregions; r++) {
    const bool below = r != self && x->spec.next[r] == self;
    if (below) tree->children[tree->nchildren++] = r;
    if (below || r == self) tree->terms[tree->nterms++] = r;
    if (below || (r == tree->parent && r != self)) tree->neighbours[tree->nneighbours++] = r;
  }
}

static void tree_open(gt_exchange *x) {
  const size_t n = x->spec.nregions;
  gt_tree *tree = &x->tree;
  tree->children = GT_NEW_ARRAY(size_t, n);
  tree->terms = GT_NEW_ARRAY(size_t, n);
  tree->neighbours = GT_NEW_ARRAY(size_t, n);
  tree->members = GT_NEW_ARRAY(size_t, n);
  tree->begin = GT_NEW_ARRAY(size_t, n + 1);
  size_t *branch = GT_NEW_ARRAY(size_t, n);
  add_neighbours(x);
  for (size_t r = 0; r < n; r++) branch[r] = branch_of(x, r);
  size_t members = 0;
  for (size_t i = 0; i < tree->nterms; i++) {
    tree->begin[i] = members;
    for (size_t r = 0; r < n; r++)
      if (tree->terms[i] != x->spec.self && branch[r] == tree->terms[i])
        tree->members[members++] = r;
  }
  tree->begin[tree->nterms] = members;
  gt_free(branch);
}

static void tree_close(gt_exchange *x) {
  gt_free(x->tree.children);
  gt_free(x->tree.terms);
  gt_free(x->tree.neighbours);
  gt_free(x->tree.members);
  gt_free(x->tree.begin);
}

static size_t pieces(const gt_collective *c) {
  return c->npieces;
}

/* Returns the number of children of the region. */
static size_t children_of(const gt_exchange_spec *spec) {
  size_t children = 0;
  for (size_t r = 0; r < spec->nregions; r++)
    children += r != spec->self && spec->next[r] == spec->self;
  return children;
}

/* A region sends one sum to its parent and one mean to all its children.  Sums of children can be
   pending. */
static gt_exchange_need need_of_sums(size_t children, size_t up, size_t n) {
  return (gt_exchange_need){.kept = (1 + children) * n,
                            .bodies = (up + (children > 0)) * n,
                            .saved = (up + (children > 1 ? children - 1 : 0)) * n};
}

/* A region joins the pieces of an update of every other region, and forwards them if it has another
   neighbor.  A checkpoint has the incomplete updates. */
static gt_exchange_need need_of_updates(size_t others, size_t neighbours, size_t n) {
  return (gt_exchange_need){.kept = others * n,
                            .bodies = (1 + (neighbours > 1 ? others : 0)) * n,
                            .saved = (1 + others) * n};
}

/* A region keeps the last model of every region, and sends each neighbor a separate copy. */
static gt_exchange_need need_of_models(size_t others, size_t neighbours, size_t n) {
  return (gt_exchange_need){
      .kept = (1 + 2 * others) * n, .bodies = neighbours * n, .saved = (neighbours + others) * n};
}

static gt_exchange_need need(const gt_exchange_spec *spec, gt_cast cast, size_t n) {
  const size_t children = children_of(spec), others = spec->nregions - 1;
  const size_t up = spec->next[spec->self] != spec->self;
  if (cast == GT_CAST_ROUNDS) return need_of_sums(children, up, n);
  return cast == GT_CAST_UPDATES ? need_of_updates(others, children + up, n)
                                 : need_of_models(others, children + up, n);
}

const gt_topology_ops gt_topology_hub = {
    .name = "hub",
    .need = need,
    .routed = true,
    .in_pieces = true,
    .open = tree_open,
    .close = tree_close,
    .unit = pieces,
    .allreduce = &gt_tree_allreduce,
    .broadcast = &gt_tree_broadcast,
};

const gt_topology_ops gt_topology_tree = {
    .name = "tree",
    .need = need,
    .routed = true,
    .in_pieces = true,
    .open = tree_open,
    .close = tree_close,
    .unit = pieces,
    .allreduce = &gt_tree_allreduce,
    .broadcast = &gt_tree_broadcast,
};
