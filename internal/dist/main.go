// SPDX-License-Identifier: Apache-2.0

// Command dist makes a release: for each architecture an archive and a Debian package with
// the executable, manual pages, completions, documents and licences, a bill of materials,
// archives for other systems, and the checksums of all. The same commit and the same Go give the same bytes on every machine.
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
	archs := flag.String("arch", "amd64,arm64", "build for these architectures")
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
		for _, system := range others[arch] {
			if err := b.releaseOther(system, arch, common, output); err != nil {
				return fmt.Errorf("%s/%s: %w", system, arch, err)
			}
		}
	}
	return write(out, output)
}

// release adds the files of an architecture of Linux to the output.
func (b *builder) release(arch string, common []file, output map[string][]byte) error {
	files, linked, err := b.built("linux", arch)
	if err != nil {
		return err
	}
	starter, err := b.executable("unwindd-plugins", "linux", arch)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(starter)
	if err != nil {
		return err
	}
	files = append(append(files, file{"libexec/unwindd/unwindd-plugins", 0o755, content}), common...)
	name := fmt.Sprintf("unwindd-%s-linux-%s", b.version, arch)
	if output[name+".tar.gz"], err = tarGz(under(name, files), b.time); err != nil {
		return err
	}
	d := debian{b.revision, arch}
	output[d.name()], err = d.pack(files, linked)
	return err
}

// built builds unwindd, and returns it with the licences of its modules.
func (b *builder) built(system, arch string) ([]file, []*linkedModule, error) {
	exe, err := b.executable("unwindd", system, arch)
	if err != nil {
		return nil, nil, err
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		return nil, nil, err
	}
	linked, err := linkedModules(exe, system, arch)
	if err != nil {
		return nil, nil, err
	}
	name := "bin/unwindd"
	if system == "windows" {
		name += ".exe"
	}
	bill, err := billOfMaterials(b.revision, system+"/"+arch, content, linked)
	return []file{
		{name, 0o755, content},
		{docDir + "/THIRD-PARTY.txt", 0o644, licenceTexts(linked)},
		{docDir + "/unwindd.cdx.json", 0o644, bill},
	}, linked, err
}

// others are the systems besides Linux that are released, by architecture.
var others = map[string][]string{"amd64": {"darwin", "windows"}, "arm64": {"darwin"}}

// releaseOther adds the archive of a system that reads files of Linux to the output: it
// has no service, and starts no plugins.
func (b *builder) releaseOther(system, arch string, common []file, output map[string][]byte) error {
	files, _, err := b.built(system, arch)
	if err != nil {
		return err
	}
	for _, f := range common {
		isOfUnix := strings.HasPrefix(f.path, "share/") && !strings.HasPrefix(f.path, docDir)
		if strings.HasPrefix(f.path, docDir) || isOfUnix && system != "windows" {
			files = append(files, f)
		}
	}
	name := fmt.Sprintf("unwindd-%s-%s-%s", b.version, system, arch)
	if system == "windows" {
		output[name+".zip"], err = zipped(under(name, files), b.time)
		return err
	}
	output[name+".tar.gz"], err = tarGz(under(name, files), b.time)
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
