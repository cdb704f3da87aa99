// SPDX-License-Identifier: Apache-2.0

// The stacks of a process that another one traces, by libunwind: of each line "PID R0 ... R16",
// registers by DWARF number, it prints the PCs, innermost first.

#include <fcntl.h>
#include <inttypes.h>
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t registers[17];
static int memory;

static int accessMemory(unw_addr_space_t space, unw_word_t at, unw_word_t *value, int isWrite, void *arg) {
	(void)space;
	(void)arg;
	return isWrite || pread(memory, value, sizeof *value, (off_t)at) != sizeof *value ? -UNW_EINVAL : 0;
}

static int accessRegister(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int isWrite, void *arg) {
	(void)space;
	(void)arg;
	if (isWrite || number < 0 || number > 16)
		return -UNW_EBADREG;
	*value = registers[number];
	return 0;
}

static int accessFloat(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int isWrite, void *arg) {
	(void)space;
	(void)number;
	(void)value;
	(void)isWrite;
	(void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg) {
	(void)space;
	(void)cursor;
	(void)arg;
	return -UNW_EINVAL;
}

int main(void) {
	unw_accessors_t accessors = {_UPT_find_proc_info, _UPT_put_unwind_info, _UPT_get_dyn_info_list_addr, accessMemory, accessRegister, accessFloat, resume, NULL};
	int pid;
	while (scanf("%d", &pid) == 1) {
		for (int i = 0; i < 17; i++)
			if (scanf("%" SCNx64, &registers[i]) != 1)
				return 1;
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/mem", pid);
		memory = open(path, O_RDONLY);
		unw_addr_space_t space = unw_create_addr_space(&accessors, 0);
		unw_set_caching_policy(space, UNW_CACHE_NONE);
		void *arg = _UPT_create(pid);
		unw_cursor_t cursor;
		unw_word_t pc;
		if (unw_init_remote(&cursor, space, arg) == 0)
			for (int n = 0; n < 5000; n++) {
				if (unw_get_reg(&cursor, UNW_REG_IP, &pc) != 0)
					break;
				printf("%" PRIx64 " ", pc);
				if (unw_step(&cursor) <= 0)
					break;
			}
		printf("\n");
		fflush(stdout);
		_UPT_destroy(arg);
		unw_destroy_addr_space(space);
		close(memory);
	}
	return 0;
}
