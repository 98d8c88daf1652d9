/* geotrain help: the texts of the commands and keys, and the man pages and completions that are
   made from the tables of commands and options. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/job.h"

const gt_command *gt_command_find(const char *name) {
  const char *names[32];
  size_t n = 0;
  for (; gt_commands[n].name; n++) {
    if (strcmp(gt_commands[n].name, name) == 0) return &gt_commands[n];
    names[n] = gt_commands[n].name;
  }
  const char *near = gt_nearest(name, names, n);
  GT_FAIL(GT_ERR_JOB, "%.80s is not a command%s%s%s; `geotrain help` lists them", name,
          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  return NULL;
}

void gt_commands_print(FILE *to) {
  fprintf(to, "geotrain " GT_VERSION
              ": trains a neural network on data that lie in several regions joined by a WAN\n"
              "It computes on CPUs only; GPUs and other accelerators are not used.\n\n"
              "usage: geotrain COMMAND [arguments]\n\n");
  for (const gt_command *c = gt_commands; c->name; c++)
    fprintf(to, "  %-9s %s\n", c->name, c->summary);
  fprintf(to,
          "\nExit codes: 0 done, 1 a fault of geotrain, 2 usage or job file, 3 data, 4 "
          "checkpoint, 5 a peer or link was lost,\n"
          "6 a limit ended the run, 7 probe or selftest says NO-GO, 75 stopped by a signal with a\n"
          "checkpoint written.\n"
          "After SIGTERM, Ctrl-C and SIGHUP, mpirun and srun return codes of their own (1, 129, "
          "137).\n");
}

/* ---- man pages and completions --------------------------------------------------------------- */

/* Writes the lines of a text, for man. */
static void put_roff(FILE *to, const char *text, size_t size) {
  bool begins = true;
  for (size_t i = 0; i < size; i++) {
    if (begins && (text[i] == '.' || text[i] == '\'')) fputs("\\&", to);
    if (text[i] == '\\')
      fputs("\\e", to);
    else if (text[i] == '-')
      fputs("\\-", to);
    else
      fputc(text[i], to);
    begins = text[i] == '\n';
  }
}

static void put_page(FILE *to, const char *name, const char *of, int section, const char *summary,
                     const char *synopsis, size_t length, const char *text) {
  fprintf(to, ".TH GEOTRAIN%s%s %d \"\" \"geotrain " GT_VERSION "\"\n.SH NAME\ngeotrain%s%s \\- ",
          *name ? "\\-" : "", name, section, *name ? "\\-" : "", name);
  put_roff(to, summary, strlen(summary));
  fprintf(to, "\n.SH %s\n.nf\n", of);
  put_roff(to, synopsis, length);
  fputs(".fi\n.SH DESCRIPTION\n.nf\n", to);
  put_roff(to, text, strlen(text));
  fputs(".fi\n.SH SEE ALSO\ngeotrain(1), geotrain\\-job(5)\n", to);
}

/* The usage of a command begins with its synopsis, up to an empty line. */
static void put_command(FILE *to, const void *what) {
  const gt_command *c = what;
  const char *rest = strstr(c->usage, "\n\n");
  const size_t length = rest ? (size_t)(rest - c->usage) + 1 : strlen(c->usage);
  put_page(to, c->name, "SYNOPSIS", 1, c->summary, c->usage, length, rest ? rest + 2 : "");
}

/* Writes a page whose description `print` writes. */
static void put_printed(FILE *to, const char *name, const char *of, int section,
                        const char *summary, const char *synopsis, void (*print)(FILE *out)) {
  char *text = NULL;
  size_t size = 0;
  FILE *printed = open_memstream(&text, &size);
  print(printed);
  fclose(printed);
  put_page(to, name, of, section, summary, synopsis, strlen(synopsis), text);
  free(text);
}

static void put_main(FILE *to, const void *unused) {
  (void)unused;
  put_printed(to, "", "SYNOPSIS", 1, "trains neural networks on data in several regions",
              "geotrain COMMAND [arguments]\n", gt_commands_print);
}

static void put_job(FILE *to, const void *unused) {
  (void)unused;
  put_printed(to, "job", "FILES", 5, "the keys of a job file", "JOB.yaml\n", gt_job_help);
}

/* Calls `put` for the options of a command, each once. */
static void each_option(FILE *to, const gt_command *c,
                        void (*put)(FILE *to, const gt_command *c, const struct option *o)) {
  for (size_t t = 0; c->options[t]; t++)
    for (const struct option *o = c->options[t]; o->name; o++) {
      bool first = true;
      for (size_t before = 0; before < t; before++)
        for (const struct option *k = c->options[before]; k->name; k++)
          first = first && strcmp(k->name, o->name) != 0;
      if (first) put(to, c, o);
    }
}

/* Writes the actions of a command, as in `geotrain data import`: the second words of its
   synopsis. */
static void put_actions(FILE *to, const gt_command *c, const char *before) {
  char said[16] = "";
  for (const char *line = c->usage; *line && *line != '\n'; line = strchr(line, '\n') + 1) {
    const char *word = line + strlen("geotrain ") + strlen(c->name) + 1;
    const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    if (strncmp(line, "geotrain ", 9) != 0 || n == 0 || n >= sizeof said || word[n] != ' ')
      continue;
    if (strncmp(said, word, n) == 0 && !said[n]) continue;
    snprintf(said, sizeof said, "%.*s", (int)n, word);
    fprintf(to, "%s%s", before, said);
  }
}

static void bash_option(FILE *to, const gt_command *unused, const struct option *o) {
  (void)unused;
  fprintf(to, " --%s", o->name);
}

static void put_bash(FILE *to, const void *unused) {
  (void)unused;
  fputs("_geotrain() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} commands actions options words\n"
        "  commands=\"",
        to);
  for (const gt_command *c = gt_commands; c->name; c++)
    fprintf(to, "%s%s", c == gt_commands ? "" : " ", c->name);
  fputs("\"\n  case ${COMP_WORDS[1]} in\n", to);
  for (const gt_command *c = gt_commands; c->name; c++) {
    fprintf(to, "    %s) actions=\"", c->name);
    put_actions(to, c, " ");
    fputs("\" options=\"", to);
    each_option(to, c, bash_option);
    fputs("\" ;;\n", to);
  }
  fputs("  esac\n"
        "  words=$actions\n"
        "  [ \"${COMP_WORDS[1]}\" != help ] || words=\"$commands job\"\n"
        "  [ \"$COMP_CWORD\" = 2 ] || words=\n"
        "  [ \"$COMP_CWORD\" != 1 ] || words=$commands\n"
        "  [ \"${cur#-}\" = \"$cur\" ] || words=$options\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "}\n"
        "complete -o default -F _geotrain geotrain\n",
        to);
}

static void put_quoted(FILE *to, const char *text) {
  for (; *text; text++) fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, to);
}

static void zsh_option(FILE *to, const gt_command *unused, const struct option *o) {
  (void)unused;
  fprintf(to, " '*--%s%s'", o->name,
          o->has_arg == no_argument         ? ""
          : o->has_arg == required_argument ? "=:value:_files"
                                            : "=-::value:");
}

static void put_zsh(FILE *to, const void *unused) {
  (void)unused;
  fputs("#compdef geotrain\n"
        "local -a commands actions\n"
        "commands=(",
        to);
  for (const gt_command *c = gt_commands; c->name; c++) {
    fprintf(to, "\n  '%s:", c->name);
    put_quoted(to, c->summary);
    fputc('\'', to);
  }
  fputs(")\n"
        "if ((CURRENT == 2)); then _describe command commands; return; fi\n"
        "case $words[2] in\n",
        to);
  for (const gt_command *c = gt_commands; c->name; c++) {
    fprintf(to, "  %s) actions=(", c->name);
    put_actions(to, c, " ");
    fputs(c->options[0] ? ")\n    ((CURRENT == 3)) && compadd -a actions\n    _arguments" : ")",
          to);
    each_option(to, c, zsh_option);
    fputs(c->options[0] ? " '*:file:_files' ;;\n" : "\n    _describe command commands ;;\n", to);
  }
  fputs("esac\n", to);
}

static void fish_option(FILE *to, const gt_command *c, const struct option *o) {
  fprintf(to, "complete -c geotrain -n '__fish_seen_subcommand_from %s' -l %s%s\n", c->name,
          o->name, o->has_arg == required_argument ? " -r" : "");
}

static void put_fish(FILE *to, const void *unused) {
  (void)unused;
  for (const gt_command *c = gt_commands; c->name; c++) {
    fprintf(to, "complete -c geotrain -n __fish_use_subcommand -f -a %s -d '", c->name);
    put_quoted(to, c->summary);
    fprintf(to, "'\ncomplete -c geotrain -n '__fish_seen_subcommand_from %s' -a '", c->name);
    put_actions(to, c, " ");
    fputs("'\n", to);
    each_option(to, c, fish_option);
  }
}

/* Writes all files to an existing folder. */
static gt_status write_files(const char *folder) {
  static const struct {
    const char *name;
    void (*put)(FILE *to, const void *what);
  } files[] = {{"geotrain.1", put_main},
               {"geotrain-job.5", put_job},
               {"geotrain.bash", put_bash},
               {"_geotrain", put_zsh},
               {"geotrain.fish", put_fish}};
  char path[4096];
  bool whole = true;
  for (size_t i = 0; whole && i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    whole = gt_file_compose(path, files[i].put, NULL);
  }
  for (const gt_command *c = gt_commands; whole && c->name; c++) {
    snprintf(path, sizeof path, "%s/geotrain-%s.1", folder, c->name);
    whole = gt_file_compose(path, put_command, c);
  }
  if (whole) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "help: %s cannot be written (%s); expected a folder that exists", path,
                 strerror(errno));
}

/* ---- geotrain help, help COMMAND, help job [KEY] --------------------------------------------- */

gt_status gt_cmd_help(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--files") == 0) return write_files(argv[2]);
  const bool job = argc > 1 && strcmp(argv[1], "job") == 0;
  if (argc > (job ? 3 : 2))
    return GT_FAIL(GT_ERR_JOB, "help has %d arguments; expected a command, or job and a key",
                   argc - 1);
  if (argc < 2) {
    gt_commands_print(stdout);
  } else if (job && argc == 2) {
    gt_job_help(stdout);
  } else if (job && strcmp(argv[2], "--markdown") == 0) {
    gt_job_help_markdown(stdout);
  } else if (job) {
    return gt_job_help_key(stdout, argv[2]);
  } else {
    const gt_command *command = gt_command_find(argv[1]);
    if (!command) return GT_ERR_JOB;
    printf("%s: %s\n\n%s", command->name, command->summary, command->usage);
  }
  return GT_OK;
}
