// SPDX-License-Identifier: Apache-2.0

// Command fatbins holds the fat binaries of NVIDIA's libraries against cuobjdump: every cubin that it
// takes out, byte for byte. And the number by which CUPTI knows each against what cuptiGetCubinCrc of
// several versions says. Tools and libraries are PyPI's; no GPU is needed.
//
//	go run ./fatbins
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/engine/object"
)

func main() { cost.Exit("fatbins", run()) }

// libraries are packages with fat binaries. CUDA 11 has processors that cuobjdump 13 refuses.
var libraries = []string{"nvidia-nvjpeg==13.3.2.43", "nvidia-nvjpeg-cu12==12.4.0.76"}

// cuptis are packages of CUPTI whose function works without a driver.
var cuptis = []string{"nvidia-cuda-cupti-cu11==11.8.87", "nvidia-cuda-cupti-cu12==12.1.105", "nvidia-cuda-cupti-cu12==12.9.79", "nvidia-cuda-cupti==13.0.48"}

const cuobjdump = "nvidia-cuda-cuobjdump==13.5.37"

// asker prints CUPTI's number of each file that is named on its standard input.
const asker = `
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct params { size_t size, cubinSize; const void *cubin; uint64_t crc; };
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_LAZY);
  int (*ask)(struct params *) = library ? dlsym(library, "cuptiGetCubinCrc") : 0;
  static char name[4096];
  static unsigned char bytes[1 << 26];
  if (!ask) return 1;
  while (fgets(name, sizeof name, stdin)) {
    name[strcspn(name, "\n")] = 0;
    FILE *f = fopen(name, "rb");
    if (!f) return 2;
    struct params p = {sizeof p, fread(bytes, 1, sizeof bytes, f), bytes, 0};
    fclose(f);
    if (ask(&p)) return 3;
    printf("%016lx\n", (unsigned long)p.crc);
  }
}
`

func run() error {
	dir, remove, err := cost.Folder("", "unwindd-fatbins-")
	if err != nil {
		return err
	}
	defer remove()
	tools, err := wheel(dir, cuobjdump)
	if err != nil {
		return err
	}
	dump, err := find(tools, "cuobjdump")
	if err != nil {
		return err
	}
	cubins := map[string]string{} // files, by the hash of their bytes
	for _, name := range libraries {
		folder, err := wheel(dir, name)
		if err != nil {
			return err
		}
		library, err := find(folder, "libnvjpeg.so*")
		if err != nil {
			return err
		}
		if err := compare(name, library, dump, filepath.Join(folder, "cubins"), cubins); err != nil {
			return err
		}
	}
	return askAll(dir, cubins)
}

// wheel downloads a package and unpacks it into a folder of its own.
func wheel(dir, name string) (string, error) {
	folder := filepath.Join(dir, strings.ReplaceAll(name, "==", "-"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	err := cost.Run(folder, "sh", "-c", "python3 -m pip -q download --no-deps -d wheel "+name+" && python3 -m zipfile -e wheel/*.whl . && chmod -R u+x .")
	return folder, err
}

// find returns the one file of a name below a folder.
func find(folder, pattern string) (found string, err error) {
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok && err == nil && d.Type().IsRegular() {
			found = path
		}
		return err
	})
	if err == nil && found == "" {
		err = fmt.Errorf("%s has no %s", folder, pattern)
	}
	return found, err
}

// compare holds the cubins in a library against what cuobjdump takes out, and keeps these.
func compare(name, library, dump, dir string, cubins map[string]string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := cost.Run(dir, dump, "-all", "-xelf", "all", library); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.cubin"))
	if err != nil {
		return err
	}
	theirs := map[string]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		theirs[hash(b)] = file
		cubins[hash(b)] = file
	}
	o, err := object.Open(library)
	if err != nil {
		return err
	}
	defer o.Close()
	count, missing := 0, len(theirs)
	for n, err := range o.Nested(nil) {
		switch {
		case err != nil:
			return err
		case n.Image != "":
			continue
		case theirs[hash(n.Data)] == "":
			return fmt.Errorf("%s: %s at %#x is none of cuobjdump's", name, n.Name, n.Bundle)
		}
		if count++; theirs[hash(n.Data)] != "seen" {
			missing--
		}
		theirs[hash(n.Data)] = "seen"
	}
	fmt.Printf("%-32s %d cubins, %d files of cuobjdump's, %d of them missing here\n", name, count, len(files), missing)
	if missing > 0 || count == 0 {
		return fmt.Errorf("%s: %d cubins are missing", name, missing)
	}
	return nil
}

func hash(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// askAll holds the numbers of cubins against the answers of each version of CUPTI.
func askAll(dir string, cubins map[string]string) error {
	source, program := filepath.Join(dir, "ask.c"), filepath.Join(dir, "ask")
	if err := os.WriteFile(source, []byte(asker), 0o600); err != nil {
		return err
	}
	if err := cost.Run(dir, "gcc", "-O1", source, "-o", program, "-ldl"); err != nil {
		return err
	}
	var files []string
	for _, file := range cubins {
		files = append(files, file)
	}
	for _, name := range cuptis {
		folder, err := wheel(dir, name)
		if err != nil {
			return err
		}
		library, err := find(folder, "libcupti.so*")
		if err != nil {
			return err
		}
		cmd := exec.Command(program, library)
		cmd.Stdin = strings.NewReader(strings.Join(files, "\n") + "\n")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		answers := bufio.NewScanner(bytes.NewReader(out))
		for _, file := range files {
			o, err := object.Open(file)
			if err != nil {
				return err
			}
			id, ok := o.CubinID()
			_ = o.Close()
			if !answers.Scan() || !ok || answers.Text() != fmt.Sprintf("%016x", id) {
				return fmt.Errorf("%s: %s: number %016x here, %s there", name, file, id, answers.Text())
			}
		}
		fmt.Printf("%-32s %d numbers are the same\n", name, len(files))
	}
	return nil
}
