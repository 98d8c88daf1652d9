# Not tried: no Spack could be installed where this was written.  There is no published archive, so
# a checkout is built:
#     spack repo add packaging/spack_repo/geotrain
#     spack dev-build --source-path . geotrain@0.1.0
from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Geotrain(CMakePackage):
    """Geo-distributed training of neural networks: one MPI program that trains a model on data
    that lie in several regions, joined by a WAN."""

    license("BSD-3-Clause")

    version("0.1.0")

    variant("onednn", default=True, description="Kernels of oneDNN")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3.1:")
    depends_on("openblas")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("libyaml")
    depends_on("jansson")
    depends_on("openssl@3:")
    depends_on("curl@7.85:")
    depends_on("zlib-api")
    depends_on("libpng")
    depends_on("jpeg")
    depends_on("onednn@2:3", when="+onednn")
    depends_on("cmocka", type="test")

    def cmake_args(self):
        return [
            self.define("GEOTRAIN_DNN", "ON" if self.spec.satisfies("+onednn") else "OFF"),
            self.define("BUILD_TESTING", self.run_tests),
        ]

    def test_selftest(self):
        """two regions train; a resumed run has the same bits"""
        which(self.prefix.bin.geotrain)("selftest")
