/* Calls nothing of the library: what it was compiled for must still count. */
#include "client.h"

int main(void)
{
    return 0;
}
