# Writes the commit of SOURCE to the header OUT: "1a2b3c4d5e6f", "1a2b3c4d5e6f-dirty" with changes,
# "unknown" without git.  `git archive` fills in the commit below (.gitattributes).
set(commit "$Format:%h$")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define GT_COMMIT \"${commit}\"\n")
