-- Lmod: copy to <modulefiles>/geotrain/0.1.0.lua, and set the prefix of `cmake --install`.
whatis("Name: geotrain")
whatis("Version: 0.1.0")
whatis("Description: geo-distributed training of neural networks")
help("geotrain help; man geotrain; geotrain selftest")

local prefix = os.getenv("GEOTRAIN_PREFIX") or "/opt/geotrain"
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
-- Completions of bash; the default folders follow, because they hold only where the variable is unset.
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
append_path("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
-- An FPATH of one folder would hide zsh's own functions.
if os.getenv("FPATH") then prepend_path("FPATH", pathJoin(prefix, "share/zsh/site-functions")) end
