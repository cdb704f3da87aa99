// SPDX-License-Identifier: Apache-2.0

// Package goget tests what others download: the module as a proxy has it of a tag.
package goget
