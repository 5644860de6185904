/* A second file of a program. */
#include "client.h"
