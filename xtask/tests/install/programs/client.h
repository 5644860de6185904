/* The headers of the installation that the programs here include, in their order. */
#include <gasnetex.h>
