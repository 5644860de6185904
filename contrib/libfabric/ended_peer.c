/* A peer whose endpoint was closed, in the provider shm of libfabric, without argonet.
 *
 *     cc ended_peer.c -lfabric -o ended_peer && ./ended_peer shm; ./ended_peer shm poll
 *
 * Two endpoints of one process; the second is closed, and the first sends to it. A provider may
 * refuse that, or take it and report an error. With "poll" the first has sent a message, which the
 * second has read before it was closed, and polls. "shm" of libfabric 1.17 ends with a signal in
 * both cases, as it uses memory of the closed endpoint. */

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        int code = (call);                                                     \
        if (code < 0) {                                                        \
            fprintf(stderr, "%s: %s\n", #call, fi_strerror(-code));            \
            return 2;                                                          \
        }                                                                      \
    } while (0)

struct end {
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    char name[256];
};

static int open_end(struct fid_domain *domain, struct fi_info *info, struct end *end) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {.type = FI_AV_UNSPEC};
    size_t len = sizeof end->name;
    CHECK(fi_cq_open(domain, &cq, &end->cq, NULL));
    CHECK(fi_av_open(domain, &av, &end->av, NULL));
    CHECK(fi_endpoint(domain, info, &end->ep, NULL));
    CHECK(fi_ep_bind(end->ep, &end->cq->fid, FI_SEND | FI_RECV));
    CHECK(fi_ep_bind(end->ep, &end->av->fid, 0));
    CHECK(fi_enable(end->ep));
    CHECK(fi_getname(&end->ep->fid, end->name, &len));
    return 0;
}

int main(int argc, char **argv) {
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct end own, peer;
    fi_addr_t to;
    static char buffer[8000] = "hello", room[8000];
    struct fi_cq_msg_entry entry;

    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(argc > 1 ? argv[1] : "shm");
    CHECK(fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info));
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK(fi_domain(fabric, info, &domain, NULL));
    if (open_end(domain, info, &own) || open_end(domain, info, &peer)) return 2;
    if (fi_av_insert(own.av, peer.name, 1, &to, 0, NULL) != 1) return 2;

    if (argc > 2 && !strcmp(argv[2], "poll")) {
        CHECK(fi_recv(peer.ep, room, sizeof room, NULL, FI_ADDR_UNSPEC, NULL));
        long sent;
        while ((sent = fi_send(own.ep, buffer, sizeof buffer, NULL, to, NULL)) == -FI_EAGAIN) {
            fi_cq_read(own.cq, &entry, 1);
            fi_cq_read(peer.cq, &entry, 1);
        }
        CHECK(sent);
        while (fi_cq_read(peer.cq, &entry, 1) == -FI_EAGAIN) {}
        CHECK(fi_close(&peer.ep->fid));
        printf("fi_cq_read behind a send to a closed endpoint: ");
        fflush(stdout);
        printf("%ld\n", (long)fi_cq_read(own.cq, &entry, 1));
        return 0;
    }
    CHECK(fi_close(&peer.ep->fid));
    printf("fi_send to a closed endpoint: ");
    fflush(stdout);
    long code = fi_send(own.ep, buffer, sizeof buffer, NULL, to, NULL);
    printf("%ld (%s)\n", code, code ? fi_strerror((int)-code) : "taken");
    return 0;
}
