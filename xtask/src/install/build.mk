# Stands where clients that bring GASNet along expect the Makefile of its build directory: all is built already.
# "make install prefix=DIR" copies the installed tree into DIR; the copy goes on using this tree's libraries.
TREE = ../../..

all seq par parsync amudprun clean:
	@:

install: all
	@test -n "$(prefix)" || { echo "say where: make install prefix=DIR" >&2; exit 1; }
	mkdir -p "$(DESTDIR)$(prefix)"
	cp -R "$(TREE)/." "$(DESTDIR)$(prefix)/"

.PHONY: all seq par parsync amudprun clean install
