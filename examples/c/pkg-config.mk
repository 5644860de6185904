# Builds $(PROGRAM) from $(PROGRAM).c with pkg-config:
#   make -f Makefile.pkg-config PKG_CONFIG_PATH=/where/argonet/is/installed/lib/pkgconfig
# Another thread mode or conduit: PACKAGE=gasnet-smp-par; with shared libraries: PACKAGE=gasnet-smp-seq-shared.
PACKAGE = gasnet-smp-seq
ASK = PKG_CONFIG_PATH='$(PKG_CONFIG_PATH)' pkg-config

$(PROGRAM): $(PROGRAM).c
	$(ASK) --exists --print-errors $(PACKAGE)
	$(CC) $(shell $(ASK) --cflags $(PACKAGE)) $< -o $@ $(shell $(ASK) --libs $(PACKAGE)) $(LIBS)

clean:
	rm -f $(PROGRAM)

.PHONY: clean
