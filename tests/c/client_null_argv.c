/* gex_Client_Init without argc and argv, and with the flag for GASNet-1, which comes back as
 * given. */
#include "check.h"

int main(void) {
  check_start_with(NULL, NULL, "client_null_argv", GEX_FLAG_USES_GASNET1);
  CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_USES_GASNET1);
  CHECK_EQ(gex_System_QueryJobSize(), ranks);
  return check_finish();
}
