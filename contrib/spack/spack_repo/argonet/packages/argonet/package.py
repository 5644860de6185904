# SPDX-License-Identifier: MIT OR Apache-2.0

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Argonet(Package):
    """PGAS and active messages: GASNet-EX and GASNet-1 for C and C++ runtimes, with the launcher
    argonet. Rust programs depend on the crate argonet instead."""

    # The address of the repository that you clone from; `spack dev-build` needs none.
    homepage = "https://example.org/argonet"
    git = "https://example.org/argonet.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    variant("debug", default=False, description="Check every call of clients (GASNET_DEBUG)")
    variant(
        "segment",
        default="fast",
        values=("fast", "large", "everything"),
        multi=False,
        description="Memory of a process that others reach: GASNET_SEGMENT_FAST and so on",
    )
    variant(
        "conduits",
        default="smp,tcp,udp,portals",
        values=("smp", "tcp", "udp", "portals"),
        multi=True,
        description="Conduits that clients are linked for",
    )

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    # GNU's ld, nm and objcopy make one object of the library.
    depends_on("binutils", type="build")

    requires("platform=linux")
    requires("target=x86_64:")

    # The files for make and pkg-config name the compiler for clients.
    filter_compiler_wrappers("*.mak", "*.pc", "gasnet_config.h", "config.status")

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        options = [
            f"--segment={spec.variants['segment'].value}",
            "--conduits=" + ",".join(spec.variants["conduits"].value),
        ]
        if spec.satisfies("+debug"):
            options.append("--debug")
        cargo("xtask", "install", "--prefix", prefix, *options)
        cargo("install", "--locked", "--no-track", "--path", "cli", "--root", prefix)
