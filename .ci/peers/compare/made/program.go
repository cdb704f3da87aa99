// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// A role is a kind of threads of a rank: how many it has, and the places where they may stand.
type role struct {
	name   string
	count  int
	places []string
}

// roles are the roles of a rank's threads, 30 in all. The first place of the first role is where the ranks wait; the last
// place of each is where a healthy one never is.
var roles = []role{
	{"train", 1, []string{"all_reduce", "all_reduce_next", "backward", "checkpoint"}},
	{"watchdog", 1, []string{"sleep", "report"}},
	{"progress", 2, []string{"poll", "send", "reconnect"}},
	{"loader", 10, []string{"read", "decode", "queue", "retry"}},
	{"compute", 16, []string{"idle", "copy", "launch", "fault"}},
}

// place is a thread's role and place, by index.
type place struct{ role, place int }

func (p place) String() string { return roles[p.role].name + "_" + roles[p.role].places[p.place] }

// odd returns the place of a role where a healthy rank never is.
func odd(role int) place { return place{role, len(roles[role].places) - 1} }

// header declares what the program and its library share.
const header = `#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
extern sem_t never;
int work_wait(int x);
extern volatile int sink;
`

// library waits: all threads stand in it. Two builds of it differ in their build IDs alone.
const library = header + `
sem_t never;
volatile int sink;
static NOINLINE int work_poll(int x) { char page[256]; memset(page, x, sizeof page); while (sem_wait(&never)) sink++; return page[x & 63] + sink; }
NOINLINE int work_wait(int x) { volatile int y = x; y += work_poll(x) + 1; return y; }
`

// source returns the program: a function of its own for each role, each place, and each call on the way there.
func source() string {
	var b strings.Builder
	b.WriteString(header)
	for r := range roles {
		name := roles[r].name
		for _, p := range roles[r].places {
			fmt.Fprintf(&b, "static NOINLINE int %[1]s_%[2]s_inner(int x) { volatile int y = x; y += work_wait(x) + 1; return y; }\n", name, p)
			fmt.Fprintf(&b, "static NOINLINE int %[1]s_%[2]s(int x) { char b[96]; memset(b, x, sizeof b); sink = b[x & 63]; return %[1]s_%[2]s_inner(x + 1) + b[x & 31]; }\n", name, p)
		}
		fmt.Fprintf(&b, "static NOINLINE int %s_step(int p) { switch (p) {\n", name)
		for i, p := range roles[r].places {
			fmt.Fprintf(&b, "  case %d: return %s_%s(p + sink) + sink;\n", i, name, p)
		}
		fmt.Fprintf(&b, "  } return 0; }\nstatic NOINLINE int %[1]s_loop(int p) { int n = 0; do n += %[1]s_step(p); while (sink); return n; }\n", name)
		fmt.Fprintf(&b, "static void *%[1]s_main(void *p) { return (void *)(long)%[1]s_loop((int)(long)p); }\n", name)
	}
	b.WriteString("static void start(void *(*f)(void *), int p) { pthread_t t; pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 256 << 10); if (pthread_create(&t, &a, f, (void *)(long)p)) _exit(1); }\n")
	b.WriteString("int main(void) {\n  sem_init(&never, 0, 0);\n")
	for r := range roles {
		fmt.Fprintf(&b, "  for (int i = 0; i < %d; i++) for (int p = 0; p < %d; p++) start(%s_main, p);\n", roles[r].count, len(roles[r].places), roles[r].name)
	}
	b.WriteString("  sleep(1); puts(\"ready\"); fflush(stdout); pause(); }\n")
	return b.String()
}

// program is the program that the snapshots are made of, with two builds of its library.
type program struct {
	exe string
	// builds are the files of the library.
	builds [2]string
}

// newProgram compiles the program in a folder.
func newProgram(dir string) (*program, error) {
	p := &program{exe: filepath.Join(dir, "rank")}
	for file, text := range map[string]string{"rank.c": source(), "work.c": library} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	for i, id := range []string{"0x1111111111111111111111111111111111111111", "0x2222222222222222222222222222222222222222"} {
		folder := filepath.Join(dir, fmt.Sprintf("build%d", i))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		p.builds[i] = filepath.Join(folder, "libwork.so")
		if err := cost.Run(dir, "gcc", "-g", "-O2", "-fPIC", "-shared", "-Wl,-soname,libwork.so", "-Wl,--build-id="+id, "-o", p.builds[i], "work.c", "-lpthread"); err != nil {
			return nil, err
		}
	}
	return p, cost.Run(dir, "gcc", "-g", "-O2", "-fno-ipa-icf", "-o", p.exe, "rank.c", p.builds[0], "-Wl,-rpath,"+filepath.Dir(p.builds[0]), "-lpthread")
}

// start starts the program, and returns it once all of its threads stand where they are to stand.
func (p *program) start() (*exec.Cmd, error) {
	cmd := exec.Command(p.exe)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if !bufio.NewScanner(out).Scan() {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s ended early: %w", p.exe, cmd.Wait())
	}
	return cmd, nil
}
