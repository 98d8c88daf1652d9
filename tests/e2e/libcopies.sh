# Shared by the end-to-end scripts of several copies of a pipeline.  Sourced after libpipeline.sh.

# copies_job REGIONS PIPELINE: two copies of a pipeline that ssgd keeps equal.
copies_job() {
  pipeline_job "$1" '' '[]' | sed -e "s/^pipeline: .*/pipeline: {$2, micro_batches: 6}/" \
    -e 's/^wan: .*/wan: {emulate: true, default: {bandwidth: 100 Mbit\/s, latency: 5 ms}}\nsync: {strategy: ssgd, period: 5}/'
}
# Each copy in one region, with one worker that has the whole model; each in two regions.  The
# regions with the data have the same numbers in both, so that they get the same samples.
copies_job '{name: east, ranks: 2}, {name: london, ranks: 2}' 'stages: [{region: east}], copies: [{regions: london}]' >one.yaml
copies_job '{name: east, ranks: 2}, {name: london, ranks: 2}, {name: west, ranks: 2}, {name: paris, ranks: 2}' \
  'stages: [{region: east, last: [transformer.h.0, lm_head]}, {region: west, last: [transformer.h.1, transformer.h.2]}], copies: [{regions: [london, paris]}]' >two.yaml
