/* What the programs here include of the installation, and in which order. */
#include <gasnetex.h>
