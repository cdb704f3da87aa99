// SPDX-License-Identifier: Apache-2.0

// Command dist makes a release: for each architecture an archive and a Debian package with
// the executable, manual pages, completions, documents and licences, a bill of materials, and
// the checksums of all. The same commit and the same Go give the same bytes on every machine.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("o", "dist", "write into the directory `DIR`, which is made")
	archs := flag.String("arch", "amd64,arm64", "build for these architectures of Linux")
	flag.Parse()
	if err := run(*out, strings.Split(*archs, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

// run makes everything. The working directory is the top of a checkout.
func run(out string, archs []string) error {
	r, err := readRevision()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "unwindd-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := builder{revision: r, dir: work}
	common, err := b.common()
	if err != nil {
		return err
	}
	output := map[string][]byte{}
	for _, arch := range archs {
		if err := b.release(arch, common, output); err != nil {
			return fmt.Errorf("linux/%s: %w", arch, err)
		}
	}
	return write(out, output)
}

// release adds the files of an architecture to the output.
func (b *builder) release(arch string, common []file, output map[string][]byte) error {
	exe, err := b.executable("unwindd", "linux", arch)
	if err != nil {
		return err
	}
	starter, err := b.executable("unwindd-plugins", "linux", arch)
	if err != nil {
		return err
	}
	linked, err := linkedModules(exe, arch)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	starterContent, err := os.ReadFile(starter)
	if err != nil {
		return err
	}
	notices := licenceTexts(linked)
	bill, err := billOfMaterials(b.revision, arch, linked)
	if err != nil {
		return err
	}
	files := append([]file{
		{"bin/unwindd", 0o755, content},
		{"libexec/unwindd/unwindd-plugins", 0o755, starterContent},
		{docDir + "/THIRD-PARTY.txt", 0o644, notices},
		{docDir + "/unwindd.cdx.json", 0o644, bill},
	}, common...)
	name := fmt.Sprintf("unwindd-%s-linux-%s", b.version, arch)
	if output[name+".tar.gz"], err = tarGz(under(name, files), b.time); err != nil {
		return err
	}
	d := debian{b.revision, arch}
	output[d.name()], err = d.pack(files, linked)
	return err
}

// write writes the files and their checksums into a directory. Other files there would not
// belong to this release, and are refused.
func write(dir string, output map[string][]byte) error {
	var sums strings.Builder
	for _, name := range sortedKeys(output) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(output[name]), name)
	}
	output["SHA256SUMS"] = []byte(sums.String())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range there {
		if output[f.Name()] == nil {
			return fmt.Errorf("%s: it is not of this release, expected an empty directory", filepath.Join(dir, f.Name()))
		}
	}
	var wrong []error
	for name, content := range output {
		wrong = append(wrong, os.WriteFile(filepath.Join(dir, name), content, 0o644)) //nolint:gosec // for everybody
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Print(sums.String())
	return nil
}
