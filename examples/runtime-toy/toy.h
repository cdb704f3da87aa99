// SPDX-License-Identifier: Apache-2.0
//
// What the toy's interpreter keeps in memory. The plugin has the layouts of these types from the debug
// information, by their names and those of their members.
#include <stdbool.h>
#include <stddef.h>

enum { LOCALS = 8, ARGUMENTS = 4, NAME = 16, TEXT = 32, ITEMS = 8, STATEMENTS = 16, WORDS = 8, THUNK = 32 };

enum toy_kind { TOY_KIND_UNSET, TOY_KIND_NUMBER, TOY_KIND_TEXT, TOY_KIND_LIST };

struct toy_value {
	enum toy_kind kind;
	union {
		long number;
		struct toy_text *text;
		struct toy_list *list;
	} as;
};

struct toy_text {
	char bytes[TEXT]; // to a zero
};

struct toy_list {
	unsigned count;
	struct toy_value items[ITEMS];
};

// A statement is a line of the program, in words.
struct toy_statement {
	unsigned line;
	unsigned count;
	char *words[WORDS];
};

struct toy_function {
	char name[NAME];
	char names[LOCALS][NAME]; // of locals, parameters first
	unsigned parameters, locals, statements;
	struct toy_statement body[STATEMENTS];
};

// A frame is a call of a function of the toy's.
struct toy_frame {
	struct toy_frame *caller;
	struct toy_function *function;
	unsigned statement;
	void *entry; // of the first frame of an activation of toy_run: an address in its native frame
	struct toy_value locals[LOCALS];
};

enum toy_state { TOY_STATE_READY, TOY_STATE_RUNNING, TOY_STATE_WAITING, TOY_STATE_DONE };

// A task runs until it waits or ends; then its thread runs another one.
struct toy_task {
	struct toy_task *next;
	unsigned long number, parent, waits_for;
	enum toy_state state;
	int carrier; // the thread that runs it; 0: none
	struct toy_function *function;
	struct toy_frame *top; // while it does not run
	struct toy_value result;
};

// A thread is one of the operating system that runs functions of the toy's.
struct toy_thread {
	struct toy_thread *next;
	int id;
	struct toy_frame *top;
	struct toy_task *task;
};

struct toy_builtin {
	char name[NAME];
	struct toy_value (*function)(struct toy_thread *, struct toy_value *arguments);
};

struct toy_runtime {
	char file[64]; // the program
	struct toy_thread *threads;
	struct toy_task *tasks;
	struct toy_builtin *builtins;
	unsigned builtin_count;
	unsigned char *thunks; // made at the start: one for each builtin, THUNK bytes apart
	unsigned thunk_size;
};

extern struct toy_runtime toy_runtime;
