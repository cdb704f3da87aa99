// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"time"
)

// job is a job of many processes or threads.
type job struct {
	name   string
	needs  []string // commands
	isLong bool     // it is not in the quick form
	run    func(*work) (*answer, error)
}

var jobs = []job{
	{"mpi late", []string{"mpirun", "mpicc"}, false, ranks(64, "late", "write_checkpoint", 1)},
	{"mpi behind", []string{"mpirun", "mpicc"}, true, ranks(64, "behind", "end_epoch", 1)},
	{"mpi spinning", []string{"mpirun", "mpicc"}, true, ranks(16, "late", "write_checkpoint", 3)},
	{"python", []string{"/usr/bin/python3"}, false, workers(debianPython)},
	{"python of pyenv", nil, true, workers(pyenvPython)},
	{"servers", []string{"g++"}, false, servers},
	{"threads", []string{"gcc"}, false, threads},
	{"goroutines", nil, false, goroutines},
	{"crashes", []string{"gcc"}, false, crashes},
}

// settle is how long a job that has come to its state is left alone: the last ranks enter what they wait in.
const settle = time.Second

// ranks is a job of Open MPI whose ranks wait in MPI_Allreduce for one that is in a function of its own. At one
// moment ranks give up the processor as they wait. Such as are collected at several spin: they are elsewhere in the
// library each time.
func ranks(whole int, how, function string, moments int) func(*work) (*answer, error) {
	yields := "1"
	if moments > 1 {
		yields = "0"
	}
	return func(w *work) (*answer, error) {
		program, err := w.build("ranks.c", "mpicc", "-O1", "-g")
		if err != nil {
			return nil, err
		}
		count := w.size(8, whole)
		outlier := w.choose(count)
		if _, err := w.start("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", yields,
			"-n", strconv.Itoa(count), program, w.dir, how, strconv.Itoa(outlier)); err != nil {
			return nil, err
		}
		pids, err := w.await("ready", count)
		if err != nil {
			return nil, err
		}
		time.Sleep(settle)
		w.moments = moments
		a, err := w.compareProcesses(pids, planted{label: "rank", values: strconv.Itoa(outlier), last: "train", here: function})
		if err != nil || how == "behind" { // those wait for each other for ever
			return a, err
		}
		return a, w.release(count)
	}
}

// workers is a job of Python processes that meet in a barrier, of which one is late.
func workers(python func() (string, error)) func(*work) (*answer, error) {
	return func(w *work) (*answer, error) {
		interpreter, err := python()
		if err != nil {
			return nil, err
		}
		program, err := w.build("ranks.py")
		if err != nil {
			return nil, err
		}
		count := w.size(8, 32)
		late := w.choose(count)
		if _, err := w.start(interpreter, program, w.dir, strconv.Itoa(count), strconv.Itoa(late)); err != nil {
			return nil, err
		}
		pids, err := w.await("ready", count)
		if err != nil {
			return nil, err
		}
		time.Sleep(settle)
		a, err := w.compareProcesses(pids, planted{label: "rank", values: strconv.Itoa(late), last: "train", here: "load_batch"})
		if err != nil {
			return a, err
		}
		if err := w.pySpy(pids, late, a); err != nil {
			return a, err
		}
		return a, w.release(count)
	}
}

// threads is a process of many threads, of which one is elsewhere.
func threads(w *work) (*answer, error) {
	program, err := w.build("threads.c", "gcc", "-O1", "-g", "-pthread")
	if err != nil {
		return nil, err
	}
	count := w.size(1000, 10_000)
	cmd, err := w.start(program, w.dir, strconv.Itoa(count), strconv.Itoa(w.choose(count)))
	if err != nil {
		return nil, err
	}
	if _, err := w.await("ready", 1); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	a, err := w.compare([]string{strconv.Itoa(cmd.Process.Pid)}, planted{count: 1, last: "worker", here: "rebuild_index"})
	if err != nil {
		return a, err
	}
	return a, w.release(1)
}

// goroutines is a service of Go, a few of whose goroutines wait elsewhere.
func goroutines(w *work) (*answer, error) {
	program, err := w.build("goroutines/main.go", "go", "build", "-trimpath")
	if err != nil {
		return nil, err
	}
	cmd, err := w.start(program, w.dir, strconv.Itoa(w.size(1000, 10_000)), "3")
	if err != nil {
		return nil, err
	}
	if _, err := w.await("ready", 1); err != nil {
		return nil, err
	}
	a, err := w.compare([]string{strconv.Itoa(cmd.Process.Pid)}, planted{count: 3, last: "main.(*service).session", here: "main.(*service).writeLedger"})
	if err != nil {
		return a, err
	}
	return a, w.release(1)
}
