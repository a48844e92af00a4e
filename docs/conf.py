"""The docs site: ``make docs`` builds it into ``build/site``, warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bayesneg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

# small tables: threads of torch would wait for each other where other processes use the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "bayesneg"
author = "The bayesneg developers"
copyright = author
version = release = bayesneg.__version__

extensions = [
    "myst_nb",  # Markdown, and tutorials that are executed
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "parameters",  # the parameters of a class, those that it inherits among them
    "public_names",  # the pages of the reference, from the package itself
    "reports",  # the reports of the gallery, made by the package itself
    "repository_links",  # links to files that are not pages
]
templates_path = ["_templates"]
exclude_patterns = ["_site", "_templates"]
nitpicky = True
# annotations name other libraries, type variables and classes that are not public; functions and methods must be there
nitpick_ignore_regex = [("py:(class|exc|obj|data|mod)", r".*")]
suppress_warnings = ["myst.header"]  # folded tables and generated pages begin at any level

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_cache_path = str(HERE.parent / "build" / "executed")
nb_merge_streams = True

autosummary_ignore_module_all = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
add_module_names = False
toc_object_entries = False

html_theme = "pydata_sphinx_theme"
html_title = f"bayesneg {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # excerpts are fetched, which a page that was opened as a file may not
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
