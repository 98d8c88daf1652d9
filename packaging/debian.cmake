# A Debian package: `cmake --build BUILD --target package`, in a build with CMAKE_BUILD_TYPE=Release.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the geotrain authors <maintainers@users.noreply.a-seed-fc0d2e74.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "geotrain trains one neural network on data that lie in several regions and stay there.
A slow, unreliable, metered WAN joins the regions. geotrain is one MPI program.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # the libraries that the program is linked with
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, openssh-client")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "curl | wget, jq, dataset-fashion-mnist")
include(CPack)
