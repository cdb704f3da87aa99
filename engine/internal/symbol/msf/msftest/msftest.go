// SPDX-License-Identifier: Apache-2.0

// Package msftest makes containers of PDB files for tests.
package msftest

import "encoding/binary"

const (
	magic = "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"
	page  = 512
)

// Container makes a container with pages of 512 bytes: streams lie in it in the order of their
// pages, each page of another stream than the one before as long as there are such.
func Container(streams ...[]byte) []byte {
	var body []byte
	next := uint32(3)
	numbers := make([][]uint32, len(streams))
	for more := true; more; {
		more = false
		for i, s := range streams {
			at := len(numbers[i]) * page
			if at >= len(s) {
				continue
			}
			more = true
			body = append(body, s[at:min(len(s), at+page)]...)
			body = append(body, make([]byte, (page-len(body)%page)%page)...)
			numbers[i] = append(numbers[i], next)
			next++
		}
	}
	directory := binary.LittleEndian.AppendUint32(nil, uint32(len(streams))) //nolint:gosec // few
	for _, s := range streams {
		directory = binary.LittleEndian.AppendUint32(directory, uint32(len(s))) //nolint:gosec // small
	}
	for _, list := range numbers {
		for _, n := range list {
			directory = binary.LittleEndian.AppendUint32(directory, n)
		}
	}
	size := uint32(len(directory)) //nolint:gosec // small
	var pages []byte
	for at := 0; at < len(directory); at += page {
		pages = binary.LittleEndian.AppendUint32(pages, next)
		next++
	}
	directory = append(directory, make([]byte, (page-len(directory)%page)%page)...)
	out := []byte(magic)
	for _, v := range []uint32{page, 1, next + 1, size, 0, next} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	out = append(out, make([]byte, 3*page-len(out))...)
	out = append(out, body...)
	out = append(out, directory...)
	out = append(out, pages...)
	return append(out, make([]byte, page-len(pages)%page)...)
}

// PDB makes a PDB file that has an identity, and code of the machine at the RVA 0x1000, but no
// functions.
func PDB(guid [16]byte, age uint32, machine uint16) []byte {
	le := binary.LittleEndian
	info := le.AppendUint32(nil, 20000404)
	info = le.AppendUint32(le.AppendUint32(info, 0), age+7) // the age of the file is not the image's
	info = append(info, guid[:]...)
	dbi := make([]byte, 64)
	le.PutUint32(dbi, 0xffffffff)
	le.PutUint32(dbi[4:], 19990903)
	le.PutUint32(dbi[8:], age)
	for _, at := range []int{12, 16, 20} { // streams of symbols: none
		le.PutUint16(dbi[at:], 0xffff)
	}
	le.PutUint16(dbi[58:], machine)
	const headers = 4 // the number of their stream
	numbers := []uint16{0xffff, 0xffff, 0xffff, 0xffff, 0xffff, headers, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff}
	le.PutUint32(dbi[48:], uint32(2*len(numbers)))
	for _, n := range numbers {
		dbi = le.AppendUint16(dbi, n)
	}
	section := make([]byte, 40)
	copy(section, ".text")
	le.PutUint32(section[8:], 0x100)
	le.PutUint32(section[12:], 0x1000)
	le.PutUint32(section[36:], 0x60000020) // code that may be read and executed
	return Container(nil, info, nil, dbi, section)
}
