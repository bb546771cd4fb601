import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))

from slugs import plain, slug  # noqa: E402


class Letters(unittest.TestCase):
    def test_marks_go_and_letters_stay(self):
        self.assertEqual(plain("Crème brûlée"), "creme brulee")


class Slugs(unittest.TestCase):
    def test_words_are_joined(self):
        self.assertEqual(slug("Hello, World!"), "hello-world")

    def test_a_long_title_is_cut_between_words(self):
        self.assertEqual(slug("one two three", longest=9), "one-two")

    def test_a_long_word_is_cut_in_itself(self):
        self.assertEqual(slug("unbelievable", longest=5), "unbel")


if __name__ == "__main__":
    unittest.main()
