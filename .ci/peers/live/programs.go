// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is something that waits, and how it is started. "%d" in arguments is a folder of
// its own, that may be removed.
type program struct {
	argv []string
	// input has a pipe that never says anything on standard input, pty a terminal.
	input, pty bool
}

// filters wait for their standard input.
var filters = []string{
	"cat", "tac", "wc", "sort", "uniq", "tee", "od", "md5sum", "sha1sum", "sha256sum", "b2sum", "cksum", "base64", "base32",
	"fold", "fmt", "nl", "paste -", "expand", "unexpand", "head", "tail", "tsort", "shuf", "ptx", "pr", "sum", "rev", "column", "hexdump", "colrm",
	"gzip -c", "bzip2 -c", "xz -c", "zstd -c", "lz4 -c", "tr a b", "cut -c1", "sed p", "grep x", "awk {print}", "mawk {print}", "xargs echo",
	"bash", "dash", "sh", "perl", "ruby", "python3", "/usr/bin/python3", "lua5.4 -", "tclsh", "node -", "php", "sqlite3", "bc", "dc", "m4", "jq .",
	"openssl sha256", "git hash-object --stdin", "gdb -q -nx", "file -f -", "cpp", "gcc -x c -c -o /dev/null -", "as -o /dev/null", "c++filt",
	"addr2line -e /bin/cat", "llvm-symbolizer-22", "patch", "diff - /dev/null", "cpio -o", "less", "iconv -f utf8", "psql", "erl", "sbcl", "ghci", "ed", "telnet",
	"clang-22 -x c -c -o /dev/null -", "opt-22", "llc-22", "ld.bfd -r -o /dev/null -", "xmllint -", "make -f -", "ctags -L -", "m4 -P", "tar -cf /dev/null -T -", "dd", "split", "csplit - 1", "tail -n 1", "comm - /dev/null", "join - /dev/null",
}

// others wait for time, or for clients.
var others = []program{
	{argv: []string{"sleep", "1000"}},
	{argv: []string{"tail", "-f", "/dev/null"}},
	{argv: []string{"perl", "-e", "sub f { sleep 1000 } f()"}},
	{argv: []string{"perl", "-e", "sort { sleep 1000 } 1, 2"}},
	{argv: []string{"ruby", "-e", "4.times { Thread.new { sleep } }; sleep"}},
	{argv: []string{"/usr/bin/python3", "-c", "import time; time.sleep(1000)"}},
	{argv: []string{"/usr/bin/python3", "-c", "import threading, time\nfor i in range(8): threading.Thread(target=lambda: time.sleep(1000)).start()"}},
	{argv: []string{"/usr/bin/python3", "-c", "import queue; queue.Queue().get()"}},
	{argv: []string{"python3", "-c", "import select; select.select([], [], [])"}},
	{argv: []string{"python3", "-m", "http.server", "0", "--bind", "127.0.0.1"}},
	{argv: []string{"php", "-r", "sleep(1000);"}},
	{argv: []string{"tclsh"}, pty: true},
	{argv: []string{"lua5.4"}, pty: true},
	{argv: []string{"node", "-e", "setInterval(() => {}, 100000)"}},
	{argv: []string{"redis-server", "--port", "0", "--dir", "%d"}},
	{argv: []string{"ssh-agent", "-D", "-a", "%d/agent"}},
	{argv: []string{"dbus-daemon", "--session", "--nofork", "--address=unix:path=%d/bus"}},
	{argv: []string{"emacs", "-Q", "--batch", "--eval", "(sleep-for 1000)"}},
	{argv: []string{"vim", "-u", "NONE", "-i", "NONE"}, pty: true},
	{argv: []string{"less", "/etc/passwd"}, pty: true},
	{argv: []string{"bash"}, pty: true},
	{argv: []string{"gdb", "-q", "-nx"}, pty: true},
	{argv: []string{"tmux", "-D", "-S", "%d/tmux"}},
	{argv: []string{"watch", "-n", "1000", "true"}, pty: true},
	{argv: []string{"nginx", "-p", "%d", "-c", "%d/nginx.conf", "-e", "%d/error.log"}},
	{argv: []string{"java", "-Xint", "-cp", "%d", "Wait"}},
}

const nginxConfiguration = "daemon off;\nworker_processes 2;\npid nginx.pid;\nevents {}\nhttp { access_log off; server { listen unix:%d/socket; } }\n"

// javaProgram waits.
const javaProgram = `public class Wait { public static void main(String[] a) throws Exception { synchronized (a) { a.wait(); } } }`

// programs returns the programs of this machine, repeated to have so many.
func programs(dir string, count int) (list []program) {
	var all []program
	for _, f := range filters {
		all = append(all, program{argv: strings.Fields(f), input: true})
	}
	all = append(all, others...)
	for _, p := range all {
		if _, err := exec.LookPath(p.argv[0]); err != nil {
			fmt.Println("left out, because it is not installed:", p.argv[0])
			continue
		}
		list = append(list, p)
	}
	known := len(list)
	for i := known; i < count; i++ {
		list = append(list, list[i%known])
	}
	for i := range list {
		list[i].argv = placed(list[i].argv, filepath.Join(dir, fmt.Sprint(i)))
	}
	return list
}

// placed are arguments with their folder, which is made.
func placed(argv []string, dir string) (list []string) {
	for _, a := range argv {
		list = append(list, strings.ReplaceAll(a, "%d", dir))
	}
	if strings.Join(list, " ") == strings.Join(argv, " ") {
		return list
	}
	_ = os.MkdirAll(dir, 0o700)
	_ = os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(strings.ReplaceAll(nginxConfiguration, "%d", dir)), 0o600)
	if list[0] == "java" {
		source := filepath.Join(dir, "Wait.java")
		_ = os.WriteFile(source, []byte(javaProgram), 0o600)
		if out, err := exec.Command("javac", "-d", dir, source).CombinedOutput(); err != nil {
			fmt.Printf("javac: %v\n%s", err, out)
		}
	}
	return list
}
