/* A client that calls the one library as well. */
#include "client.h"

#include "gasnet_tools.h"

int main(void)
{
    return gasnett_cpu_count() < 1 || gasnett_ticks_to_ns(gasnett_ticks_now()) == 0;
}
