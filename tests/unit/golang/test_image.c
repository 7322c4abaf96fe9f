/* SPDX-License-Identifier: GPL-2.0 */
/* An ELF file as weir reads it: its segments, sections and relocations. */
#include "golang/image.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "golang_fixture.h"

#define ADDRESS 0x400000ULL
#define AT(member) (ADDRESS + offsetof(struct program, member))
#define MARK 0x1122334455667788ULL
#define BIG (600U << 10)

/* A PIE that is one segment, where its parts stand. Tests change what they are about. */
struct program {
	Elf64_Ehdr header;
	Elf64_Phdr phdrs[4];
	Elf64_Dyn dynamic[4];
	Elf64_Rela relas[3];
	__u64 words[4];
	Elf64_Shdr sections[3];
	char names[32];
	char text[8];
};

static struct program program;
static struct image image;
static struct error err;

static Elf64_Phdr load(__u64 address, __u64 offset, __u64 size, __u32 flags)
{
	return (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = flags, .p_vaddr = address, .p_offset = offset, .p_filesz = size
	};
}

static Elf64_Rela relocation(__u64 address, __u32 type, __u64 addend)
{
	return (Elf64_Rela){ .r_offset = address, .r_info = ELF64_R_INFO(0, type), .r_addend = (__s64)addend };
}

static void make_dynamic(void)
{
	program.phdrs[1] =
		(Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_vaddr = AT(dynamic), .p_filesz = sizeof(program.dynamic) };
	program.dynamic[0] = (Elf64_Dyn){ .d_tag = DT_RELA, .d_un.d_ptr = AT(relas) };
	program.dynamic[1] = (Elf64_Dyn){ .d_tag = DT_RELASZ, .d_un.d_val = 2 * sizeof(Elf64_Rela) };
	program.dynamic[2] = (Elf64_Dyn){ .d_tag = DT_RELAENT, .d_un.d_val = sizeof(Elf64_Rela) };
	for (int i = 0; i < 3; i++)
		program.relas[i] = relocation(AT(words[i]), R_X86_64_RELATIVE, 0x1000 + i);
	for (int i = 0; i < 4; i++)
		program.words[i] = MARK;
}

static void make_sections(void)
{
	program.sections[1] = (Elf64_Shdr){ .sh_name = 1, .sh_offset = offsetof(struct program, names) };
	program.sections[2] = (Elf64_Shdr){ .sh_name = 11, .sh_addr = 0x7000, .sh_size = 0x70 };
	memcpy(program.names, "\0.shstrtab\0.code", sizeof("\0.shstrtab\0.code"));
}

static int set_up(void **state)
{
	(void)state;
	program = (struct program){
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct program, phdrs),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 4,
			    .e_shoff = offsetof(struct program, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
		.phdrs = { load(ADDRESS, 0, sizeof(program), PF_R) },
	};
	memset(program.text, 'x', sizeof(program.text));
	make_dynamic();
	make_sections();
	image = (struct image){ .fd = -1 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_close(&image);
	return 0;
}

static int open_program(void)
{
	CLEANUP_CLOSE int fd = golang_fixture_open(&program, sizeof(program));

	return image_open(fd, &image, &err);
}

static void expect_words(__u64 first, __u64 second, __u64 third)
{
	const __u64 wanted[] = { first, second, third };

	for (int i = 0; i < 3; i++) {
		__u64 word = 0;

		assert_true(image_u64(&image, AT(words[i]), &word));
		assert_int_equal(word, wanted[i]);
	}
}

/* --- relocations */

static void test_all_relocations_of_a_pie(void **state)
{
	(void)state;
	assert_int_equal(open_program(), 0);
	expect_words(0x1000, 0x1001, MARK);
}

static void test_a_relocation_that_is_cut_off_is_none(void **state)
{
	(void)state;
	program.dynamic[1].d_un.d_val = 3 * sizeof(Elf64_Rela) - 1;
	assert_int_equal(open_program(), 0);
	expect_words(0x1000, 0x1001, MARK);
}

/* It is loaded where its headers say. */
static void test_none_of_a_program_that_is_no_pie(void **state)
{
	(void)state;
	program.header.e_type = ET_EXEC;
	assert_int_equal(open_program(), 0);
	assert_false(image.pie);
	expect_words(MARK, MARK, MARK);
}

static void test_each_machine_has_its_own(void **state)
{
	(void)state;
	program.header.e_machine = EM_AARCH64;
	program.relas[1] = relocation(AT(words[1]), R_AARCH64_RELATIVE, 0x2000);
	assert_int_equal(open_program(), 0);
	assert_int_equal(image.machine, IMAGE_ARM64);
	expect_words(MARK, 0x2000, MARK);
}

static void test_other_relocations_change_nothing(void **state)
{
	(void)state;
	program.relas[0] = relocation(AT(words[0]), R_X86_64_64, 0x2000);
	assert_int_equal(open_program(), 0);
	expect_words(MARK, 0x1001, MARK);
}

static void test_relocations_beyond_the_segment_are_passed_over(void **state)
{
	(void)state;
	program.relas[0] = relocation(ADDRESS + sizeof(program) - 7, R_X86_64_RELATIVE, 0x2000);
	assert_int_equal(open_program(), 0);
	expect_words(MARK, 0x1001, MARK);
}

static void test_what_stands_behind_the_end_of_the_dynamic_section_is_not_read(void **state)
{
	(void)state;
	program.dynamic[2] = program.dynamic[1];
	program.dynamic[1] = (Elf64_Dyn){ .d_tag = DT_NULL };
	assert_int_equal(open_program(), 0);
	expect_words(MARK, MARK, MARK);
}

/* --- segments */

static void test_places_within_a_segment(void **state)
{
	const __u64 size = sizeof(program) - 16; /* the file has more */

	(void)state;
	program.phdrs[0].p_filesz = size;
	assert_int_equal(open_program(), 0);
	assert_non_null(image_at(&image, ADDRESS, size));
	assert_null(image_at(&image, ADDRESS, size + 1));
	assert_non_null(image_at(&image, ADDRESS + 8, size - 8));
	assert_null(image_at(&image, ADDRESS + 8, size - 7));
	assert_null(image_at(&image, ADDRESS - 1, 1));
	assert_null(image_at(&image, ADDRESS + size, 0));
	assert_int_equal(image_left(&image, ADDRESS + 1), size - 1);
	assert_int_equal(image_left(&image, ADDRESS + size), 0);
}

static void test_a_text_has_its_end(void **state)
{
	(void)state;
	assert_int_equal(open_program(), 0);
	assert_string_equal(image_text(&image, AT(names[1]), 10), ".shstrtab");
	assert_null(image_text(&image, AT(names[1]), 9));
	assert_null(image_text(&image, AT(text), 100));
}

static void test_a_segment_that_is_cut_off(void **state)
{
	(void)state;
	program.phdrs[2] = load(0x10000, 16, sizeof(program) - 15, PF_R);
	assert_int_equal(open_program(), -ENOEXEC);
	program.phdrs[2].p_filesz--;
	assert_int_equal(open_program(), 0);
}

static void test_program_headers_that_are_cut_off(void **state)
{
	(void)state;
	program.header.e_phnum = 1;
	program.header.e_phoff = sizeof(program) - sizeof(Elf64_Phdr) + 1;
	assert_int_equal(open_program(), -ENOEXEC);
}

static void test_what_stands_behind_the_program_headers_is_no_segment(void **state)
{
	(void)state;
	program.header.e_phnum = 3;
	program.phdrs[3] = load(0x10000, 0, sizeof(program) + 1, PF_R);
	assert_int_equal(open_program(), 0);
	assert_int_equal(image.n_segments, 1);
}

static void test_segments_with_the_same_bytes_again_and_again(void **state)
{
	(void)state;
	program.phdrs[2] = load(0x10000, 0, sizeof(program), PF_R);
	program.phdrs[3] = load(0x20000, 0, 1, PF_R);
	assert_int_equal(open_program(), -ENOEXEC);
	program.phdrs[3].p_filesz = 0;
	assert_int_equal(open_program(), 0);
}

static void test_where_code_begins(void **state)
{
	__u64 offset;

	(void)state;
	program.phdrs[1] = load(ADDRESS + 0x20000, 0, 8, PF_R | PF_X);
	program.phdrs[2] = load(ADDRESS + 0x10000, 64, 8, PF_R | PF_X);
	program.phdrs[3] = load(ADDRESS - 0x10000, 0, 8, PF_R);
	assert_int_equal(open_program(), 0);
	assert_int_equal(image_code(&image), ADDRESS + 0x10000);
	assert_true(image_code_offset(&image, ADDRESS + 0x10004, &offset));
	assert_int_equal(offset, 68);
	assert_false(image_code_offset(&image, ADDRESS, &offset));
}

static void test_the_largest_segment_of_constants(void **state)
{
	__u64 from, to;

	(void)state;
	program.phdrs[0].p_flags = PF_R | PF_W;
	program.phdrs[2] = load(ADDRESS + 0x10000, 0, 8, PF_R);
	program.phdrs[3] = load(ADDRESS + 0x20000, 0, 16, PF_R);
	assert_int_equal(open_program(), 0);
	image_constants(&image, &from, &to);
	assert_int_equal(from, ADDRESS + 0x20000);
	assert_int_equal(to, ADDRESS + 0x20010);
}

static void test_the_only_segment_of_constants(void **state)
{
	__u64 from, to;

	(void)state;
	assert_int_equal(open_program(), 0);
	image_constants(&image, &from, &to);
	assert_int_equal(from, ADDRESS);
	assert_int_equal(to, ADDRESS + sizeof(program));
}

static void test_no_constants(void **state)
{
	__u64 from, to;

	(void)state;
	program.phdrs[0].p_flags = PF_R | PF_X;
	assert_int_equal(open_program(), 0);
	image_constants(&image, &from, &to);
	assert_int_equal(from, 0);
	assert_int_equal(to, 0);
}

/* --- sections */

static void test_a_section_by_its_name(void **state)
{
	__u64 address = 0, size = 0;

	(void)state;
	assert_int_equal(open_program(), 0);
	assert_true(image_section(&image, ".code", &address, &size));
	assert_int_equal(address, 0x7000);
	assert_int_equal(size, 0x70);
	assert_false(image_section(&image, ".cod", &address, &size));
}

static void test_no_names_of_sections(void **state)
{
	__u64 address, size;

	(void)state;
	program.header.e_shstrndx = 1000;
	assert_int_equal(open_program(), 0);
	assert_false(image_section(&image, ".code", &address, &size));
}

static void test_no_sections(void **state)
{
	__u64 address, size;

	(void)state;
	program.header.e_shnum = 2;
	assert_int_equal(open_program(), 0);
	assert_false(image_section(&image, ".code", &address, &size));
}

/* --- files */

/* Each piece stands where it is in the file, and what lies across the end of one is whole. */
static void test_a_file_of_several_pieces(void **state)
{
	static const __u64 places[] = { (256 << 10) - 4, (256 << 10) + 8, BIG - 8 };
	CLEANUP_CLOSE int fd = -1;

	(void)state;
	program.phdrs[0].p_filesz = BIG;
	fd = golang_fixture_open(&program, sizeof(program));
	assert_int_equal(ftruncate(fd, BIG), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pwrite(fd, &(__u64){ MARK + i }, 8, places[i]), 8);
	assert_int_equal(image_open(fd, &image, &err), 0);
	for (int i = 2; i >= 0; i--) {
		__u64 word = 0;

		assert_true(image_u64(&image, ADDRESS + places[i], &word));
		assert_int_equal(word, MARK + i);
	}
}

/* It is read piece by piece: what is gone by then is not there, and nobody waits for it. */
static void test_a_file_that_is_cut_off_meanwhile(void **state)
{
	CLEANUP_CLOSE int fd = -1;

	(void)state;
	program.phdrs[0].p_filesz = BIG;
	program.phdrs[1].p_type = PT_NULL;
	fd = golang_fixture_open(&program, sizeof(program));
	assert_int_equal(ftruncate(fd, BIG), 0);
	assert_int_equal(image_open(fd, &image, &err), 0);
	assert_int_equal(ftruncate(fd, sizeof(program)), 0);
	assert_null(image_at(&image, ADDRESS + BIG - 1, 1));
	assert_non_null(image_at(&image, ADDRESS, 1));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_relocations_of_a_pie),
		TEST(test_a_relocation_that_is_cut_off_is_none),
		TEST(test_none_of_a_program_that_is_no_pie),
		TEST(test_each_machine_has_its_own),
		TEST(test_other_relocations_change_nothing),
		TEST(test_relocations_beyond_the_segment_are_passed_over),
		TEST(test_what_stands_behind_the_end_of_the_dynamic_section_is_not_read),
		TEST(test_places_within_a_segment),
		TEST(test_a_text_has_its_end),
		TEST(test_a_segment_that_is_cut_off),
		TEST(test_program_headers_that_are_cut_off),
		TEST(test_what_stands_behind_the_program_headers_is_no_segment),
		TEST(test_segments_with_the_same_bytes_again_and_again),
		TEST(test_where_code_begins),
		TEST(test_the_largest_segment_of_constants),
		TEST(test_the_only_segment_of_constants),
		TEST(test_no_constants),
		TEST(test_a_section_by_its_name),
		TEST(test_no_names_of_sections),
		TEST(test_no_sections),
		TEST(test_a_file_of_several_pieces),
		TEST(test_a_file_that_is_cut_off_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
