# Debian's cross compiler, the libraries of build/sysroot-aarch64 (tests/aarch64/sysroot makes it), and QEMU to run
# what comes out.  Used by the preset aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot-aarch64 ABSOLUTE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(libraries ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# The wrappers mpicc and h5cc that CMake would ask are the host's, and name its folders.
set(MPI_C_COMPILER MPI_C_COMPILER-NOTFOUND CACHE FILEPATH "")
set(MPI_SKIP_COMPILER_WRAPPER ON)
set(MPI_C_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${libraries}/openmpi/lib/libmpi.so CACHE FILEPATH "")
set(MPI_C_HEADER_DIR ${libraries}/openmpi/include CACHE PATH "")
set(HDF5_C_COMPILER_EXECUTABLE HDF5_C_COMPILER_EXECUTABLE-NOTFOUND CACHE FILEPATH "")
set(HDF5_ROOT ${libraries}/hdf5/serial)
