# argonet by its own name: the targets of the package GASNet beside this one. Made by the installation.
include("${CMAKE_CURRENT_LIST_DIR}/../GASNet/GASNetConfig.cmake")
