/* Puts and gets of 8 bytes by GASNet-1: their instructions are counted. */
#include <gasnet.h>

GASNETT_BEGIN_EXTERNC

void legacy_put(gasnet_node_t node, void *dst, uint64_t value);
void legacy_put(gasnet_node_t node, void *dst, uint64_t value) { gasnet_put(node, dst, &value, 8); }

gasnet_handle_t legacy_put_nb(gasnet_node_t node, void *dst, uint64_t value);
gasnet_handle_t legacy_put_nb(gasnet_node_t node, void *dst, uint64_t value)
{
    return gasnet_put_nb(node, dst, &value, 8);
}

void legacy_put_value(gasnet_node_t node, void *dst, uint64_t value);
void legacy_put_value(gasnet_node_t node, void *dst, uint64_t value) { gasnet_put_val(node, dst, value, 8); }

void legacy_get(uint64_t *dst, gasnet_node_t node, void *src);
void legacy_get(uint64_t *dst, gasnet_node_t node, void *src) { gasnet_get(dst, node, src, 8); }

uint64_t legacy_get_value(gasnet_node_t node, void *src);
uint64_t legacy_get_value(gasnet_node_t node, void *src) { return gasnet_get_val(node, src, 8); }

GASNETT_END_EXTERNC
