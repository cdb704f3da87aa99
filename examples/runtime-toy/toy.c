// SPDX-License-Identifier: Apache-2.0
//
// An interpreter of a toy language, which has what unwindd's plugins of language runtimes are about: frames of its
// own in memory, several of them in one native frame; builtins in C, which call functions of the language in turn;
// threads, and tasks that they run by turns; and code that it makes when it starts.
//
//   toy PROGRAM
//
// A line of a program is a statement. VALUE is a number, a "text" without spaces, or a variable.
//
//   fn NAME PARAMETER...            begins a function
//   let VAR VALUE                   add VAR VALUE            list VAR VALUE...
//   call VAR FUNCTION VALUE...      of the language or a builtin
//   spawn VAR FUNCTION VALUE...     a task; VAR is its number
//   wait VAR                        until that task has ended
//   yield                           to the other tasks
//   return VALUE
#define _GNU_SOURCE
#include "toy.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct toy_runtime toy_runtime;
static struct toy_function functions[16];
static unsigned function_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t asleep;

_Noreturn static void die(const char *what, const char *which)
{
	fprintf(stderr, "toy: %s: %s\n", what, which);
	exit(1);
}

static void *new(size_t size)
{
	void *p = calloc(1, size);
	if (!p)
		die("memory", "none is left");
	return p;
}

static struct toy_value number(long n) { return (struct toy_value){TOY_KIND_NUMBER, {.number = n}}; }

// Functions.

static struct toy_function *find(const char *name)
{
	for (unsigned i = 0; i < function_count; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}

static struct toy_value *variable(struct toy_frame *frame, const char *name)
{
	struct toy_function *f = frame->function;
	for (unsigned i = 0; i < f->locals; i++)
		if (!strcmp(f->names[i], name))
			return &frame->locals[i];
	die("no variable", name);
}

static void declare(struct toy_function *f, const char *name)
{
	for (unsigned i = 0; i < f->locals; i++)
		if (!strcmp(f->names[i], name))
			return;
	if (f->locals == LOCALS)
		die("too many variables", name);
	snprintf(f->names[f->locals++], NAME, "%s", name);
}

// Adds a statement to a function.
static void add(struct toy_function *f, struct toy_statement *s)
{
	static const char *statements[] = {"let", "add", "call", "spawn", "list", "wait", "return", "yield"};
	unsigned i = 0;
	while (i < 8 && strcmp(statements[i], s->words[0]))
		i++;
	if (i == 8 || f->statements == STATEMENTS || s->count < (i < 4 ? 3 : i < 7 ? 2 : 1))
		die("misplaced, or words are missing", s->words[0]);
	if (i < 5)
		declare(f, s->words[1]);
	f->body[f->statements++] = *s;
}

static void load(const char *path)
{
	char text[128];
	FILE *in = fopen(path, "r");
	if (!in)
		die("no program", path);
	for (unsigned line = 1; fgets(text, sizeof text, in); line++) {
		struct toy_statement s = {.line = line};
		for (char *w = strtok(text, " \t\n"); w && s.count < WORDS; w = strtok(NULL, " \t\n"))
			s.words[s.count++] = strdup(w);
		if (s.count == 0 || s.words[0][0] == '#')
			continue;
		if (!strcmp(s.words[0], "fn") && s.count > 1 && function_count < 16) {
			struct toy_function *f = &functions[function_count++];
			snprintf(f->name, NAME, "%s", s.words[1]);
			for (unsigned i = 2; i < s.count; i++)
				declare(f, s.words[i]);
			f->parameters = f->locals;
		} else if (function_count) {
			add(&functions[function_count - 1], &s);
		} else {
			die("no function before", s.words[0]);
		}
	}
	fclose(in);
	snprintf(toy_runtime.file, sizeof toy_runtime.file, "%s", path);
}

// The interpreter.

static struct toy_value value(struct toy_frame *f, const char *word)
{
	char *end;
	long n = strtol(word, &end, 0);
	if (*end == 0)
		return number(n);
	if (*word != '"')
		return *variable(f, word);
	struct toy_value text = {TOY_KIND_TEXT, {.text = new(sizeof(struct toy_text))}};
	snprintf(text.as.text->bytes, TEXT, "%.*s", (int)strcspn(word + 1, "\""), word + 1);
	return text;
}

static struct toy_frame *push(struct toy_frame *caller, struct toy_function *f, struct toy_value *arguments, unsigned count)
{
	struct toy_frame *frame = new(sizeof *frame);
	frame->caller = caller;
	frame->function = f;
	for (unsigned i = 0; i < count && i < f->parameters; i++)
		frame->locals[i] = arguments[i];
	return frame;
}

static void spawn(struct toy_task *parent, struct toy_function *f, struct toy_value *arguments, unsigned count, struct toy_value *into)
{
	struct toy_task *task = new(sizeof *task), **last = &toy_runtime.tasks;
	for (task->number = 1; *last; last = &(*last)->next)
		task->number++;
	task->parent = parent ? parent->number : 0;
	task->function = f;
	task->top = push(NULL, f, arguments, count);
	*last = task;
	*into = number((long)task->number);
}

static struct toy_task *task_of(struct toy_value v)
{
	for (struct toy_task *t = toy_runtime.tasks; t; t = t->next)
		if (v.kind == TOY_KIND_NUMBER && t->number == (unsigned long)v.as.number)
			return t;
	die("no task", "wait");
}

static struct toy_builtin *builtin(const char *name)
{
	for (unsigned i = 0; i < toy_runtime.builtin_count; i++)
		if (!strcmp(toy_runtime.builtins[i].name, name))
			return &toy_runtime.builtins[i];
	die("no function", name);
}

// Calls a builtin by its thunk, or itself where this machine has no thunks.
static struct toy_value call_builtin(struct toy_thread *thread, struct toy_builtin *b, struct toy_value *arguments)
{
	struct toy_value (*code)(struct toy_thread *, struct toy_value *) = b->function;
	if (toy_runtime.thunks)
		code = (void *)(toy_runtime.thunks + (size_t)(b - toy_runtime.builtins) * toy_runtime.thunk_size);
	return code(thread, arguments);
}

// Runs the innermost frame of a thread and those that it calls, until the frame of the language that was entered
// returns, or its task waits. It calls itself by builtins alone.
__attribute__((noinline)) static struct toy_value toy_run(struct toy_thread *thread, struct toy_frame *entered)
{
	struct toy_value nothing = {0};
	entered->entry = &nothing;
	for (;;) {
		struct toy_frame *f = thread->top;
		struct toy_statement *s = &f->function->body[f->statement];
		if (f->statement == f->function->statements)
			die("no return", f->function->name);
		const char *op = s->words[0];
		struct toy_value arguments[ARGUMENTS] = {0};
		unsigned count = 0;
		for (unsigned i = 3; i < s->count && count < ARGUMENTS; i++)
			arguments[count++] = value(f, s->words[i]);
		struct toy_function *callee = s->count > 2 ? find(s->words[2]) : NULL;
		if (!strcmp(op, "let")) {
			*variable(f, s->words[1]) = value(f, s->words[2]);
		} else if (!strcmp(op, "add")) {
			variable(f, s->words[1])->as.number += value(f, s->words[2]).as.number;
		} else if (!strcmp(op, "list")) {
			struct toy_list *list = new(sizeof *list);
			for (unsigned i = 2; i < s->count; i++)
				list->items[list->count++] = value(f, s->words[i]);
			*variable(f, s->words[1]) = (struct toy_value){TOY_KIND_LIST, {.list = list}};
		} else if (!strcmp(op, "call") && callee) {
			thread->top = push(f, callee, arguments, count);
			continue; // the caller's statement ends with the return
		} else if (!strcmp(op, "call")) {
			*variable(f, s->words[1]) = call_builtin(thread, builtin(s->words[2]), arguments);
		} else if (!strcmp(op, "spawn") && callee) {
			spawn(thread->task, callee, arguments, count, variable(f, s->words[1]));
		} else if (!strcmp(op, "wait") || !strcmp(op, "yield")) {
			struct toy_task *on = *op == 'w' ? task_of(value(f, s->words[1])) : NULL;
			f->statement += !on;
			if (!on || on->state != TOY_STATE_DONE) {
				thread->task->state = on ? TOY_STATE_WAITING : TOY_STATE_READY;
				thread->task->waits_for = on ? on->number : 0;
				return nothing;
			}
		} else if (!strcmp(op, "return")) {
			struct toy_value result = value(f, s->words[1]);
			thread->top = f->caller;
			bool is_last = f == entered;
			free(f);
			if (is_last)
				return result;
			f = thread->top;
			*variable(f, f->function->body[f->statement].words[1]) = result;
		}
		f->statement++;
	}
}

// Runs a function of the language from C.
static struct toy_value toy_call(struct toy_thread *thread, struct toy_function *f, struct toy_value argument)
{
	thread->top = push(thread->top, f, &argument, 1);
	return toy_run(thread, thread->top);
}

// Runs tasks in turns until none is left.
static void schedule(struct toy_thread *thread)
{
	for (struct toy_task *t = toy_runtime.tasks; t; t = t->next ? t->next : toy_runtime.tasks) {
		if (t->state == TOY_STATE_DONE || t->state == TOY_STATE_WAITING && task_of(number((long)t->waits_for))->state != TOY_STATE_DONE)
			continue;
		struct toy_frame *first = t->top;
		while (first->caller)
			first = first->caller;
		t->state = TOY_STATE_RUNNING;
		t->carrier = thread->id;
		t->waits_for = 0;
		thread->task = t;
		thread->top = t->top;
		t->result = toy_run(thread, first);
		t->top = thread->top;
		t->carrier = 0;
		if (!t->top) {
			t->state = TOY_STATE_DONE;
			if (t == toy_runtime.tasks)
				return;
		}
	}
}

// Builtins.

static struct toy_value builtin_each(struct toy_thread *thread, struct toy_value *arguments)
{
	struct toy_function *f = find(arguments[1].as.text->bytes);
	struct toy_value last = {0};
	if (arguments[0].kind != TOY_KIND_LIST || !f)
		die("each", "expected a list and the name of a function");
	for (unsigned i = 0; i < arguments[0].as.list->count; i++)
		last = toy_call(thread, f, arguments[0].as.list->items[i]);
	return last;
}

static struct toy_value builtin_peek(struct toy_thread *thread, struct toy_value *arguments)
{
	(void)thread;
	return number(*(volatile long *)arguments[0].as.number);
}

static struct toy_value builtin_sleep(struct toy_thread *thread, struct toy_value *arguments)
{
	(void)thread;
	sem_post(&asleep);
	return number(sleep((unsigned)arguments[0].as.number));
}

static struct toy_builtin builtins[] = {{"each", builtin_each}, {"peek", builtin_peek}, {"sleep", builtin_sleep}};

// Makes a function for each builtin that calls it: push %rbp; mov %rsp,%rbp; movabs $function,%rax; call *%rax;
// pop %rbp; ret.
static void make_thunks(void)
{
	toy_runtime.builtins = builtins;
	toy_runtime.builtin_count = sizeof builtins / sizeof *builtins;
	toy_runtime.thunk_size = THUNK;
#ifdef __x86_64__
	unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		die("mmap", "thunks");
	toy_runtime.thunks = at;
	for (unsigned i = 0; i < toy_runtime.builtin_count; i++, at += THUNK) {
		memcpy(at, "\x55\x48\x89\xe5\x48\xb8", 6);
		memcpy(at + 6, &builtins[i].function, 8);
		memcpy(at + 14, "\xff\xd0\x5d\xc3", 4);
	}
	mprotect(toy_runtime.thunks, 4096, PROT_READ | PROT_EXEC);
#endif
}

// Threads.

static struct toy_thread *begin(void)
{
	struct toy_thread *thread = new(sizeof *thread);
	thread->id = gettid();
	pthread_mutex_lock(&lock);
	thread->next = toy_runtime.threads;
	toy_runtime.threads = thread;
	pthread_mutex_unlock(&lock);
	return thread;
}

static void *thread_main(void *seconds)
{
	toy_call(begin(), find("clock"), number((long)seconds));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t clocks[2];
	struct toy_value first;
	if (argc != 2)
		die("usage", "toy PROGRAM");
	load(argv[1]);
	make_thunks();
	if (!find("main") || !find("clock"))
		die("no function", "main or clock");
	spawn(NULL, find("main"), NULL, 0, &first);
	for (long i = 0; i < 2; i++) {
		pthread_create(&clocks[i], NULL, thread_main, (void *)(1000 + i));
		sem_wait(&asleep);
	}
	usleep(100000); // until they sleep
	schedule(begin());
	return 0;
}
