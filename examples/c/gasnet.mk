# Builds $(PROGRAM) from $(PROGRAM).c with the file that an installation has for make:
#   make GASNET=/where/argonet/is/installed
# Another thread mode or conduit: make clean, then make GASNET=... MODE=par CONDUIT=smp.
CONDUIT = smp
MODE = seq

ifneq ($(MAKECMDGOALS),clean)
ifndef GASNET
$(error say where argonet is installed: make GASNET=DIR)
endif
# Those of portals lie apart, since build systems of others take "portals" for "portals4".
PLACE_portals = static/
include $(GASNET)/include/$(CONDUIT)-conduit/$(PLACE_$(CONDUIT))$(CONDUIT)-$(MODE).mak
endif

$(PROGRAM): $(PROGRAM).o
	$(GASNET_LD) $(GASNET_LDFLAGS) $< -o $@ $(GASNET_LIBS) $(LIBS)

$(PROGRAM).o: $(PROGRAM).c
	$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $<

run: $(PROGRAM)
	$(GASNET_PREFIX)/bin/gasnetrun_$(CONDUIT) -n 4 ./$(PROGRAM)

clean:
	rm -f $(PROGRAM) $(PROGRAM).o

.PHONY: run clean
.DEFAULT_GOAL = $(PROGRAM)
