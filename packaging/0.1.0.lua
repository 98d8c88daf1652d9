-- Lmod: copy to <modulefiles>/geotrain/0.1.0.lua, and set the prefix of `cmake --install`.
whatis("Name: geotrain")
whatis("Version: 0.1.0")
whatis("Description: geo-distributed training of neural networks")
help("geotrain help; man geotrain; geotrain selftest")

local prefix = os.getenv("GEOTRAIN_PREFIX") or "/opt/geotrain"
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share")) -- completions of bash
prepend_path("FPATH", pathJoin(prefix, "share/zsh/site-functions"))
