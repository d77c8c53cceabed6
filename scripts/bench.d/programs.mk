# Runs /bin/true so many times: make -j8 -f programs.mk COUNT=500
all: $(addprefix program,$(shell seq $(COUNT)))
program%: ; @/bin/true
