/* Non-contiguous puts and gets: one operation moves many pieces of memory.
 *
 * Vector: lists of pieces, each of its own length. Indexed: lists of pieces of one length. Both
 * sides have as many bytes, which may be cut in different ways. Strided: elements of elemsz bytes
 * in stridelevels dimensions; strides are in bytes, of any sign and in any order, and the address
 * is that of the element whose indices are all 0. Of no element, or elements of no bytes, nothing
 * is looked at; with no dimension there is one element, and neither strides nor counts are looked
 * at.
 *
 * The other side lies in the bound segment, this one anywhere; no byte of a destination is written
 * twice. Lists of pieces stay as they are until the operation is complete; strides and counts until
 * the call returns. Flags: GEX_FLAG_IMMEDIATE, and for puts with NB and NBI
 * GEX_FLAG_ENABLE_LEAF_LC, by which gex_Event_QueryLeaf(event, GEX_EC_LC), or GEX_EC_LC of the
 * implicit operations, reports when the source may be overwritten. */
#ifndef _GASNET_VIS_H
#define _GASNET_VIS_H

#include "gasnetex.h"

#include "argonet/vis_calls.h"

/* The longest payload for the handler that gex_VIS_SetPeerCompletionHandler names. It runs at the
 * peer of this thread's next such put, as a medium reply without arguments, when all bytes lie
 * there; 0 names none. The payload stays as it is until the put is complete. */
#define GEX_VIS_MAX_PEERCOMPLETION 0x100

#endif
